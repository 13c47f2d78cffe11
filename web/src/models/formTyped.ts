/** What a control holds, and the value that it stands for. */
import { isMapping } from "./conditionValues";
import { isExact, numberOf, readJson } from "./json";
import { ZONED, momentOf } from "./formMoment";
import { words } from "./formError";
import { type Section, TEXTS, listOf } from "./formSection";
import { isEmpty, isSameValue, readValue } from "./formValue";

/** The value of a field for the answer. A text that is no number stays a text: the check names the error. */
export function valueOf(section: Section, given: unknown): unknown {
  if (TEXTS.has(section.kind)) return given ?? null;
  if (section.kind === "table") {
    const rows = listOf(given).filter(isMapping);
    return rows.map((row) => rowOf(section, row)).filter((row) => Object.keys(row).length > 0);
  }
  if (section.kind === "currency" && isMapping(given)) return isEmpty(given["amount"]) ? null : given;
  if (typeof given !== "string") return given ?? null;
  const text = given.trim();
  if (text === "") return null;
  if (section.kind === "number" || section.kind === "integer") return numberOf(text) ?? text;
  if (section.kind === "json") return parsed(text);
  if (section.kind === "datetime" && !ZONED.test(text)) return momentOf(text)?.toISOString() ?? text;
  return text;
}

function rowOf(section: Section, row: Record<string, unknown>): Record<string, unknown> {
  const cells = section.columns.map((column) => [column.field, valueOf(column, row[column.field])] as const);
  return Object.fromEntries(cells.filter(([, value]) => !isEmpty(value)));
}

function parsed(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return text;
  }
}

/** What the server could not see any more: digits that a number drops, JSON that is a text because it is broken. */
export function typingFault(section: Section, given: unknown): string {
  if (typeof given !== "string") return "";
  const text = given.trim();
  if (section.kind === "number" && !isExact(text)) return words("digits");
  if ((section.kind === "number" || section.kind === "integer") && text.includes(",")) return words("notNumber", { comma: "yes" });
  if (section.kind === "json" && /^[[{"]/.test(text) && typeof parsed(text) === "string" && !/^"(?:[^"\\]|\\.)*"$/.test(text)) return words("notJson");
  return "";
}

export function isEdited(section: Section, given: unknown): boolean {
  if (!section.hasProposal) return false;
  const [value, proposal] = [valueOf(section, given), valueOf(section, section.proposal)];
  if (isEmpty(value) && isEmpty(proposal)) return false;
  return !isSameValue(stored(section, value), stored(section, proposal));
}

function stored(section: Section, value: unknown): unknown {
  try {
    return readValue({ kind: section.kind, ...section.raw }, value);
  } catch {
    return value;
  }
}
