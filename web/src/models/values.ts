import { writeJson } from "./json";

const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

/** Marks that turn the direction of what follows would let a text read as another one: they are written out. */
export function plainText(text: string): string {
  return text.replace(TURNS, (mark) => `\\u${mark.codePointAt(0)!.toString(16)}`);
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
  return typeof value === "object" && value !== null && "amount" in value && "currency" in value;
}

/** A list of flat objects with the same names is shown as a table. */
export function isRows(value: unknown): value is Record<string, unknown>[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > 200) return false;
  const first: unknown = value[0];
  if (typeof first !== "object" || first === null || Array.isArray(first)) return false;
  const names = Object.keys(first);
  const isFlat = (row: unknown): boolean =>
    typeof row === "object" && row !== null && !Array.isArray(row) && Object.keys(row).length === names.length
    && names.every((name) => Object.hasOwn(row, name))
    && Object.values(row).every((cell) => typeof cell !== "object" || cell === null);
  return names.length > 0 && names.length <= 8 && value.every(isFlat);
}
