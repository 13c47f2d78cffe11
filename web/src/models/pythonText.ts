/** Texts as the server reads and writes them: its white space, its length of a text, its way to quote one. */

export const SPACE = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const AROUND = new RegExp(`^[${SPACE}]+|[${SPACE}]+$`, "g");

export function strip(text: string): string {
  return text.replaceAll(AROUND, "");
}

/** In characters, of which an emoji is one. */
export function lengthOf(text: string): number {
  return Array.from(text).length;
}

export function firstOf(text: string, count: number): string {
  return text.length <= count ? text : Array.from(text).slice(0, count).join("");
}

export function compareTexts(left: string, right: string): number {
  const others = Array.from(right);
  for (const [place, letter] of Array.from(left).entries()) {
    const other = others[place];
    if (other === undefined) return 1;
    if (letter !== other) return letter.codePointAt(0)! - other.codePointAt(0)!;
  }
  return lengthOf(left) - others.length;
}

const UNPRINTED = /[\\\p{C}\p{Z}]/gu;
const SHORT: Record<string, string> = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": " " };

export function quoted(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const inner = text.replaceAll(UNPRINTED, (letter) => SHORT[letter] ?? escapeOf(letter.codePointAt(0)!));
  return mark + (mark === "'" ? inner.replaceAll("'", "\\'") : inner) + mark;
}

function escapeOf(code: number): string {
  const hex = code.toString(16);
  return code < 0x100 ? `\\x${hex.padStart(2, "0")}` : code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** Without an exponent. */
export function numberText(value: number | bigint): string {
  if (Object.is(value, -0)) return "-0";
  const text = String(value);
  const [digits = "", exponent] = text.split("e");
  if (exponent === undefined) return text;
  const [whole = "", part = ""] = digits.replace("-", "").split(".");
  const shift = Number(exponent);
  const shown = shift < 0 ? `0.${"0".repeat(-shift - 1)}${whole}${part}` : whole + part.padEnd(shift, "0");
  return (digits.startsWith("-") ? "-" : "") + shown;
}

/** With commas between thousands. */
export function grouped(count: number): string {
  return String(count).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}
