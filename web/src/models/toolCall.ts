/** The call of a tool that a person is asked about. */
import { isMapping } from "./conditionValues";
import { plainText, valueText } from "./values";

export type ToolCallAsked = { id: string; agent: string; tool: string; turn: string; effect: string };

const NAMES = new Set(["entity_id", "tool", "arguments", "effect", "agent", "turn"]);

/** null: the question is about something else. Names of the context alone make no call: an author chooses them. */
export function toolCallOf({ context, schema }: { context: unknown; schema: unknown }): ToolCallAsked | null {
  if (!isMapping(context) || typeof context["tool"] !== "string" || !isMapping(context["arguments"])) return null;
  if (!isMapping(schema) || !isMapping(schema["properties"]) || !isMapping(schema["properties"]["arguments"])) return null;
  const text = (name: string) => (context[name] === undefined || context[name] === null ? "" : String(context[name]));
  return { id: text("entity_id"), agent: text("agent"), tool: text("tool"), turn: text("turn"), effect: text("effect") };
}

/** What the context has beside the call: that has no fields. */
export function besideCall(context: unknown): Record<string, unknown> {
  return isMapping(context) ? Object.fromEntries(Object.entries(context).filter(([name]) => !NAMES.has(name))) : {};
}

const LONG = 120;

/** `refund: order A17, amount 250`; shortened. */
export function callText(tool: string, given: unknown): string {
  const parts = isMapping(given) ? Object.entries(given).map(([name, value]) => `${name} ${valueText(value)}`) : [];
  const text = plainText(parts.length > 0 ? `${tool}: ${parts.join(", ")}` : tool);
  return text.length > LONG ? `${text.slice(0, LONG - 1)}…` : text;
}
