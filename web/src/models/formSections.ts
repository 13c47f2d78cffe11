/** The sections of a form while it is built. */
import { type Config, textIn, without } from "./documentData";

export const FIELD_KINDS = [
  "text", "textarea", "markdown", "number", "integer", "currency", "percent", "boolean", "select", "radio", "multiselect",
  "date", "time", "datetime", "duration", "email", "url", "phone", "user", "file", "code", "diff", "json", "table", "secret-reference",
] as const;
const CHOICES = new Set(["select", "radio", "multiselect"]);
const NUMBERS = new Set(["number", "integer", "percent", "currency"]);
const TIMES = new Set(["date", "datetime", "time", "duration"]);
const TEXTS = new Set(["text", "textarea", "markdown", "code", "diff", "phone", "user"]);

export function hasOptions(section: Config): boolean {
  return section["type"] === "decision" || CHOICES.has(textIn(section, "kind"));
}

/** What a value of a field of this kind can be held to. */
export function limitsOf(section: Config): readonly string[] {
  if (section["type"] !== "input") return [];
  return limitsOfKind(textIn(section, "kind") || "text");
}

function limitsOfKind(kind: string): readonly string[] {
  if (NUMBERS.has(kind)) return ["min", "max", "step"];
  if (TIMES.has(kind)) return ["min", "max"];
  return TEXTS.has(kind) ? ["min_length", "max_length", "pattern"] : [];
}

export function newSection(type: "context" | "input" | "decision", others: readonly Config[]): Config {
  if (type === "context") return { type, title: "Details", content: "Text" };
  const known = new Set(others.map((each) => textIn(each, "field")));
  if (type === "decision") return { type, options: [{ id: "approve", label: "Approve", variant: "primary" }, { id: "reject", label: "Reject", variant: "danger" }], ...(known.has("decision") ? { field: freeName(known) } : {}) };
  return { type, field: freeName(known), kind: "text" };
}

function freeName(known: ReadonlySet<string>): string {
  let number = 1;
  while (known.has(`field_${number}`)) number += 1;
  return `field_${number}`;
}

/** With what the new kind needs, and without what it does not know. */
export function withKind(section: Config, kind: string): Config {
  const next: Config = { ...section, kind };
  if (!CHOICES.has(kind)) next["options"] = undefined;
  else if (!Array.isArray(section["options"])) next["options"] = ["first", "second"];
  if (kind !== "table") next["columns"] = undefined;
  else if (!Array.isArray(section["columns"])) next["columns"] = [{ field: "item", kind: "text" }];
  if (kind !== "currency") next["currency"] = undefined;
  const kept = limitsOfKind(kind);
  for (const each of ["min", "max", "step", "min_length", "max_length", "pattern"]) if (!kept.includes(each)) next[each] = undefined;
  return without(next);
}
