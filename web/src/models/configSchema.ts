/** The fields of a node's config, from the schema of flow documents. */
import { type Config, isRecord, recordIn, textIn } from "./documentData";

export type FieldKind = "text" | "long" | "number" | "boolean" | "choice" | "lines" | "rows" | "group" | "yaml";
export type ConfigField = { name: string; kind: FieldKind; isRequired: boolean; help: string; choices: string[]; initial: unknown; fields: ConfigField[] };
export type ConfigFields = { summary: string; own: ConfigField[]; common: ConfigField[] };

const COMMON = new Set(["timeout", "retry", "bind", "effect", "idempotency_key", "in_doubt"]);
/** Shown by parts of their own. */
const APART = new Set(["breakpoint", "sections"]);
/** What is asked, of whom, and by when comes first; the rest of a question is set rarely. */
const FIRST = ["queue", "prompt", "options", "assignee", "priority", "timeout", "on_timeout", "context"];
const LONG = new Set(["prompt", "instructions", "system", "note"]);

export function configFields(schema: Config, type: string): ConfigFields {
  const rules = recordIn(recordIn(schema, "$defs"), "FlowNode")["allOf"];
  const rule = (Array.isArray(rules) ? rules : []).filter(isRecord).find((each) => recordIn(recordIn(recordIn(each, "if"), "properties"), "type")["const"] === type);
  if (rule === undefined) return { summary: "", own: [], common: [] };
  const config = recordIn(recordIn(recordIn(rule, "then"), "properties"), "config");
  const all = fieldsIn(schema, resolved(schema, config)).filter((each) => !APART.has(each.name));
  const has = (name: string) => all.some((each) => each.name === name);
  const [asks, waits] = [has("options") && has("assignee"), has("on_timeout")];
  const isCommon = (each: ConfigField) => (asks ? !each.isRequired && !FIRST.includes(each.name) : COMMON.has(each.name) && !(each.name === "timeout" && waits));
  const own = all.filter((each) => !isCommon(each));
  return { summary: textIn(config, "description"), own: own.toSorted(asks ? byPlace : required), common: all.filter(isCommon) };
}

function byPlace(left: ConfigField, right: ConfigField): number {
  return FIRST.indexOf(left.name) - FIRST.indexOf(right.name);
}

function required(left: ConfigField, right: ConfigField): number {
  return Number(right.isRequired) - Number(left.isRequired);
}

function fieldsIn(schema: Config, found: Config): ConfigField[] {
  const needed = Array.isArray(found["required"]) ? found["required"] : [];
  return Object.entries(recordIn(found, "properties")).map(([name, given]) => fieldOf(schema, name, isRecord(given) ? given : {}, needed.includes(name)));
}

function fieldOf(schema: Config, name: string, given: Config, isRequired: boolean): ConfigField {
  const choices = alternatives(schema, given);
  const one = choices.length === 1 ? choices[0]! : null;
  const help = textIn(given, "description") || choices.map((each) => textIn(each, "description")).find(Boolean) || "";
  const base = { name, isRequired, help, choices: [] as string[], initial: given["default"], fields: [] as ConfigField[] };
  if (one && Array.isArray(one["enum"])) return { ...base, kind: "choice", choices: one["enum"].map(String) };
  if (one && one["type"] === "boolean") return { ...base, kind: "boolean" };
  if (one && (one["type"] === "integer" || one["type"] === "number")) return { ...base, kind: "number" };
  if (one && one["type"] === "object" && isRecord(one["properties"])) return { ...base, kind: "group", fields: fieldsIn(schema, one) };
  if (one && one["type"] === "array") {
    const items = alternatives(schema, recordIn(one, "items"));
    const row = items.find((each) => isRecord(each["properties"]));
    if (row) return { ...base, kind: "rows", fields: fieldsIn(schema, row) };
    if (items.length === 1 && items[0]!["type"] === "string") return { ...base, kind: "lines" };
    return { ...base, kind: "yaml" };
  }
  const isText = choices.length > 0 && choices.every((each) => ["string", "integer", "number"].includes(textIn(each, "type")) || Array.isArray(each["enum"]));
  if (isText) return { ...base, kind: LONG.has(name) ? "long" : "text" };
  return { ...base, kind: "yaml" };
}

/** What a value may be, without null. */
function alternatives(schema: Config, given: Config): Config[] {
  const found = resolved(schema, given);
  const any = found["anyOf"];
  if (!Array.isArray(any)) return found["type"] === "null" || Object.keys(found).length === 0 ? [] : [found];
  return any.filter(isRecord).flatMap((each) => alternatives(schema, each));
}

function resolved(schema: Config, given: Config): Config {
  const name = textIn(given, "$ref").replace("#/$defs/", "");
  return name ? { ...recordIn(recordIn(schema, "$defs"), name), ...(given["default"] === undefined ? {} : { default: given["default"] }) } : given;
}
