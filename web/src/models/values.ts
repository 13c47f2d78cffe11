import { writeJson } from "./json";

/** Format characters, fillers without a glyph, joiners between plain letters, and marks of a letter after the eighth; as the server's `visible_text`. */
const MARKS = "[\\u0300-\\u036f\\u0483-\\u0489\\u0e31\\u0e34-\\u0e3a\\u0e47-\\u0e4e\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f]";
const UNSEEN = new RegExp(
  "[\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164"
    + "\\ufeff\\uffa0\\ufff0-\\ufffb\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]"
    + "|(?<![^\\x00-\\x7f])[\\u200c\\u200d]|[\\u200c\\u200d](?![^\\x00-\\x7f])"
    + `|(?<=${MARKS}{8})${MARKS}`,
  "gu",
);

/** Characters that are not seen, or turn what follows, would let a text read as another one: they are written out. */
export function plainText(text: string): string {
  return text.replace(UNSEEN, (mark) => {
    const code = mark.codePointAt(0)!;
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Any value as a text. */
export function valueText(value: unknown): string {
  if (value === undefined || value === null) return "–";
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return String(value);
  if (isMoney(value)) return `${value.amount} ${value.currency}`.trim();
  return writeJson(value);
}

function isMoney(value: unknown): value is { amount: string; currency: string } {
  return isRecord(value) && "amount" in value && "currency" in value;
}

const MOST_ROWS = 10_000;

/** A list of flat objects with the same names is shown as a table. */
export function isRows(value: unknown): value is Record<string, unknown>[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MOST_ROWS) return false;
  const first: unknown = value[0];
  if (!isRecord(first)) return false;
  const names = Object.keys(first);
  const isFlat = (row: unknown): boolean =>
    isRecord(row) && Object.keys(row).length === names.length
    && names.every((name) => Object.hasOwn(row, name))
    && Object.values(row).every((cell) => typeof cell !== "object" || cell === null);
  return names.length > 0 && names.length <= 8 && value.every(isFlat);
}

/** `order_id` reads `Order id`. */
export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
