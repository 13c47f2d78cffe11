/** A form: its sections, what is asked of whom, and the data of an answer. The server decides what is valid. */

export type Choice = { id: string; label: string };
export type Section = {
  type: "context" | "input" | "decision";
  field: string;
  kind: string;
  label: string;
  title: string;
  help: string;
  content: unknown;
  required: boolean;
  readonly: boolean;
  visibleIf: string;
  requiredIf: string;
  readonlyIf: string;
  options: Choice[];
  columns: Section[];
  proposal: unknown;
  hasProposal: boolean;
  confidence: number | null;
  currency: string;
  min: string;
  max: string;
  maxLength: number | null;
};
export type Values = Readonly<Record<string, unknown>>;
export type FormKind = "form" | "arguments" | "data" | "none";
export type Form = { kind: FormKind; sections: Section[] };

/** The field of a hold that has a schema, but no form. */
export const DATA = "data";
/** The field for a message to the agent; no argument can have this name. */
export const INSTRUCTIONS = "holdfast.instructions";
const KINDS = new Set([
  "text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference", "select", "radio", "multiselect",
  "number", "integer", "percent", "currency", "date", "datetime", "time", "duration", "boolean", "email", "url", "file",
  "json", "table",
]);
const TEXTS = new Set(["text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference"]);

export function formOf(schema: unknown, context: unknown): Form {
  const form = at(schema, "x-form");
  if (isRecord(form) && Array.isArray(form["sections"])) {
    const sections = form["sections"].filter(isRecord).map(sectionOf);
    const first = sections.find((each) => each.type === "decision");
    return { kind: "form", sections: sections.filter((each) => each !== first) };
  }
  const properties = at(at(at(schema, "properties"), "arguments"), "properties");
  if (isRecord(properties) && isRecord(context) && "tool" in context) {
    const given = isRecord(context["arguments"]) ? context["arguments"] : {};
    const fields = Object.entries(properties).map(([name, found]) => argumentOf(name, found, given[name]));
    return { kind: "arguments", sections: [...fields, sectionOf({ field: INSTRUCTIONS, kind: "textarea" })] };
  }
  if (isRecord(schema)) return { kind: "data", sections: [sectionOf({ field: DATA, kind: "json" })] };
  return { kind: "none", sections: [] };
}

function sectionOf(given: Record<string, unknown>): Section {
  const type = given["type"] === "context" || given["type"] === "decision" ? given["type"] : "input";
  const kind = type === "decision" ? "radio" : textOf(given["kind"]) || "text";
  const hasProposal = "original" in given || "default" in given;
  return {
    type,
    field: textOf(given["field"]),
    kind: KINDS.has(kind) ? kind : "text",
    label: textOf(given["label"]) || textOf(given["title"]) || labelOf(textOf(given["field"])),
    title: textOf(given["title"]),
    help: textOf(given["help"]),
    content: given["content"],
    required: given["required"] === true || type === "decision",
    readonly: given["readonly"] === true,
    visibleIf: textOf(given["visible_if"]),
    requiredIf: textOf(given["required_if"]),
    readonlyIf: textOf(given["readonly_if"]),
    options: listOf(given["options"]).map(choiceOf),
    columns: listOf(given["columns"]).map((each) => sectionOf(isRecord(each) ? each : { field: textOf(each) })),
    proposal: "original" in given ? given["original"] : given["default"],
    hasProposal,
    confidence: typeof given["confidence"] === "number" ? given["confidence"] : null,
    currency: textOf(given["currency"]),
    min: textOf(given["min"]),
    max: textOf(given["max"]),
    maxLength: typeof given["max_length"] === "number" ? given["max_length"] : null,
  };
}

const SCHEMA_KINDS: Record<string, string> = { integer: "integer", number: "number", boolean: "boolean" };
const LONG = 80;

function argumentOf(name: string, schema: unknown, value: unknown): Section {
  const type = String(at(schema, "type") ?? "");
  const choices = at(schema, "enum");
  const base = { field: name, default: value, help: at(schema, "description") };
  if (type === "string" && Array.isArray(choices)) return sectionOf({ ...base, kind: "select", options: choices });
  if (type === "string" && (typeof value === "string" || value === undefined || value === null)) {
    const isLong = String(value ?? "").includes("\n") || String(value ?? "").length > LONG;
    return sectionOf({ ...base, kind: isLong ? "textarea" : "text" });
  }
  return sectionOf({ ...base, kind: SCHEMA_KINDS[type] ?? "json" });
}

function choiceOf(given: unknown): Choice {
  if (!isRecord(given)) return { id: String(given), label: String(given) };
  const id = textOf(given["id"]);
  return { id, label: textOf(given["label"]) || id };
}

/** `order_id` reads `Order id`. */
export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

// ---- conditions

const COMPARISON = /^\s*([A-Za-z_][\w.]*)\s*(==|!=)\s*(?:'([^']*)'|"([^"]*)"|(true|false))\s*$/;

/** A condition that compares fields with texts, joined by `and`. null: it is not of this form. */
export function holds(condition: string, values: Values, decision: string | null, context: unknown): boolean | null {
  const parts = condition.split(/\s+and\s+|&&/);
  let all = true;
  for (const part of parts) {
    const found = COMPARISON.exec(part);
    if (found === null) return null;
    const [, name = "", operator, single, double, logical] = found;
    const actual = name === "decision" ? decision : name.startsWith("context.") ? at(context, name.slice(8)) : values[name];
    const expected = logical === undefined ? (single ?? double ?? "") : logical === "true";
    all &&= (actual === expected) === (operator === "==");
  }
  return all;
}

type Asked = { values: Values; decision: string | null; context: unknown };

/** What cannot be judged here is shown: the server says if it should not have been. */
export function isVisible(section: Section, { values, decision, context }: Asked): boolean {
  return !section.visibleIf || holds(section.visibleIf, values, decision, context) !== false;
}

export function isRequired(section: Section, { values, decision, context }: Asked): boolean {
  return section.required || (section.requiredIf !== "" && holds(section.requiredIf, values, decision, context) === true);
}

export function isReadonly(section: Section, { values, decision, context }: Asked): boolean {
  return section.readonly || (section.readonlyIf !== "" && holds(section.readonlyIf, values, decision, context) === true);
}

// ---- values

/** What the form shows first: what was typed before, else what is proposed. */
export function firstValues(form: Form, draft: Values): Record<string, unknown> {
  const inputs = form.sections.filter((each) => each.type !== "context");
  return Object.fromEntries(inputs.map((each) => [each.field, each.field in draft ? draft[each.field] : each.proposal]));
}

export function isEmpty(value: unknown): boolean {
  if (typeof value === "string") return value.trim() === "";
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0);
}

export function isEdited(section: Section, value: unknown): boolean {
  if (!section.hasProposal) return false;
  if (isEmpty(value) && isEmpty(section.proposal)) return false;
  return !isSame(valueOf(section, value), valueOf(section, section.proposal));
}

export function isSame(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

/** The value of a field for the answer. A text that is no number stays a text: the server names the error. */
export function valueOf(section: Section, given: unknown): unknown {
  if (TEXTS.has(section.kind)) return given ?? null;
  if (section.kind === "table") {
    const rows = listOf(given).filter(isRecord);
    return rows.map((row) => rowOf(section, row)).filter((row) => Object.keys(row).length > 0);
  }
  if (typeof given !== "string") return given ?? null;
  const text = given.trim();
  if (text === "") return null;
  if (section.kind === "number" || section.kind === "integer") return isNumber(text) ? Number(text) : text;
  if (section.kind === "json") return parsed(text);
  if (section.kind === "datetime" && !/(Z|[+-]\d\d:?\d\d)$/.test(text)) {
    const instant = new Date(text);
    return Number.isNaN(instant.getTime()) ? text : instant.toISOString();
  }
  return text;
}

function rowOf(section: Section, row: Record<string, unknown>): Record<string, unknown> {
  const cells = section.columns.map((column) => [column.field, valueOf(column, row[column.field])] as const);
  return Object.fromEntries(cells.filter(([, value]) => !isEmpty(value)));
}

/** The data of the answer: fields that are asked for and not fixed. For a tool, what differs from its call. */
export function answerData(form: Form, asked: Asked): Record<string, unknown> | null {
  if (form.kind === "none") return null;
  if (form.kind === "data") {
    const found = valueOf(form.sections[0]!, asked.values[DATA]);
    return isRecord(found) ? found : found === null ? null : { [DATA]: found };
  }
  if (form.kind === "arguments") return argumentData(form, asked.values);
  const inputs = form.sections.filter((each) => each.type !== "context" && isVisible(each, asked) && !isReadonly(each, asked));
  return Object.fromEntries(inputs.map((each) => [each.field, valueOf(each, asked.values[each.field])]));
}

function argumentData(form: Form, values: Values): Record<string, unknown> | null {
  const fields = form.sections.filter((each) => each.field !== INSTRUCTIONS);
  const isChanged = fields.some((each) => isEdited(each, values[each.field]) || (!each.hasProposal && !isEmpty(values[each.field])));
  const named = fields.map((each) => [each.field, valueOf(each, values[each.field])] as const);
  const instructions = textOf(values[INSTRUCTIONS]).trim();
  const data = {
    ...(isChanged ? { arguments: Object.fromEntries(named.filter(([, value]) => value !== null)) } : {}),
    ...(instructions ? { modifications: { instructions } } : {}),
  };
  return Object.keys(data).length > 0 ? data : null;
}

/** Fields that must be filled in and are not. */
export function missingFields(form: Form, asked: Asked): string[] {
  return form.sections
    .filter((each) => each.type !== "context" && isVisible(each, asked) && isRequired(each, asked))
    .filter((each) => isEmpty(valueOf(each, asked.values[each.field])))
    .map((each) => each.field);
}

// ---- small

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function at(value: unknown, name: string): unknown {
  return isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function isNumber(text: string): boolean {
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
