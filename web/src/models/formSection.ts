/** One section of a form: a text to read, a field, or a decision. */
import { writeJson } from "./json";
import { isMapping } from "./conditionValues";
import type { Field } from "./formValue";
import { labelOf, plainText } from "./values";

export type Choice = { id: string; label: string };
export type Section = {
  type: "context" | "input" | "decision";
  field: string;
  kind: string;
  label: string;
  title: string;
  help: string;
  content: unknown;
  options: Choice[];
  columns: Section[];
  /** What the field shows first. */
  start: unknown;
  /** What a machine proposed, else what the field shows first. */
  proposal: unknown;
  hasProposal: boolean;
  /** Where a machine proposed something else than what was there before. */
  previous: unknown;
  hasPrevious: boolean;
  confidence: number | null;
  currency: string;
  maxLength: number | null;
  accept: string[];
  /** As its author wrote it: the rules are read from it. */
  raw: Field;
};

const KINDS = new Set([
  "text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference", "select", "radio", "multiselect",
  "number", "integer", "percent", "currency", "date", "datetime", "time", "duration", "boolean", "email", "url", "file",
  "json", "table",
]);
export const TEXTS = new Set(["text", "textarea", "markdown", "code", "diff", "phone", "user", "secret-reference"]);

export function sectionOf(given: Field): Section {
  const type = given["type"] === "context" || given["type"] === "decision" ? given["type"] : "input";
  const kind = type === "decision" ? "radio" : textOf(given["kind"]) || "text";
  const [isProposed, isStarted] = ["original" in given, "default" in given];
  const options = listOf(given["options"]).map(choiceOf);
  const columns = listOf(given["columns"]).map((each) => sectionOf(isMapping(each) ? each : { field: textOf(each) }));
  const known = KINDS.has(kind) ? kind : "text";
  const raw = { ...given, type, ...(type === "input" ? { kind: known } : {}), ...(options.length > 0 ? { options } : {}), ...(columns.length > 0 ? { columns: columns.map((each) => each.raw) } : {}) };
  return {
    type,
    field: textOf(given["field"]),
    kind: known,
    label: plainText(textOf(given["label"]) || textOf(given["title"]) || labelOf(textOf(given["field"]))),
    title: plainText(textOf(given["title"])),
    help: plainText(textOf(given["help"])),
    content: given["content"],
    options,
    columns,
    start: given["default"],
    proposal: isProposed ? given["original"] : given["default"],
    hasProposal: isProposed || isStarted,
    previous: given["default"],
    hasPrevious: isProposed && isStarted && writeJson(given["original"]) !== writeJson(given["default"]),
    confidence: typeof given["confidence"] === "number" ? given["confidence"] : null,
    currency: textOf(given["currency"]),
    maxLength: typeof given["max_length"] === "number" ? given["max_length"] : null,
    accept: listOf(given["accept"]).map(String),
    raw,
  };
}

function choiceOf(given: unknown): Choice {
  if (!isMapping(given)) return { id: String(given), label: plainText(String(given)) };
  const id = textOf(given["id"]);
  return { id, label: plainText(textOf(given["label"]) || id) };
}

/** As the server shows it on a button: a label that is only the id reads as words. */
export function decisionLabel({ id, label }: Choice): string {
  return label === id && /^[a-z][a-z0-9]*([_-][a-z0-9]+)*$/.test(id) ? labelOf(id.replaceAll("-", "_")) : label;
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" || typeof value === "bigint" ? String(value) : "";
}

export function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
