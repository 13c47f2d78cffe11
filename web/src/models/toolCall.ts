/** The call of a tool that a person is asked about. */
import { isMapping } from "./conditionValues";
import { valueText } from "./values";

export type ToolCallAsked = { id: string; agent: string; tool: string; turn: string; effect: string };

/** null: the question is about something else. */
export function toolCallOf(context: unknown): ToolCallAsked | null {
  if (!isMapping(context) || typeof context["tool"] !== "string" || !isMapping(context["arguments"])) return null;
  const text = (name: string) => (context[name] === undefined || context[name] === null ? "" : String(context[name]));
  return { id: text("entity_id"), agent: text("agent"), tool: text("tool"), turn: text("turn"), effect: text("effect") };
}

const LONG = 120;

/** `refund: order A17, amount 250`; shortened. */
export function callText(tool: string, given: unknown): string {
  const parts = isMapping(given) ? Object.entries(given).map(([name, value]) => `${name} ${valueText(value)}`) : [];
  const text = parts.length > 0 ? `${tool}: ${parts.join(", ")}` : tool;
  return text.length > LONG ? `${text.slice(0, LONG - 1)}…` : text;
}
