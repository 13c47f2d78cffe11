/** JSON whose integers lose no digit: from 16 digits on they are bigint, and are written as the number that they are. */

declare global {
  interface BigInt {
    toJSON(): unknown;
  }
  interface JSON {
    rawJSON?: (text: string) => unknown;
  }
}

// A browser that cannot write a number from its text keeps the digits as a text.
// oxlint-disable-next-line no-extend-native -- JSON.stringify has no other way to write a bigint
BigInt.prototype.toJSON = function (this: bigint) {
  return JSON.rawJSON ? JSON.rawJSON(String(this)) : String(this);
};

const LONG = /\d{16}/;
/** A text, or an integer of 16 digits or more. */
const TOKENS = /"(?:[^"\\]|\\.)*"|(?<![\w.+-])-?\d{16,}(?![\d.eE])/g;
/** Of this page alone: no text of a server is taken for a number. */
const MARK = `integer ${Math.random().toString(36).slice(2)} `;

export function readJson(text: string): unknown {
  // Most answers have no such number, and reading each value by itself takes longer.
  if (!LONG.test(text)) return JSON.parse(text);
  const marked = text.replace(TOKENS, (token) => (token.startsWith('"') ? token : `"${MARK}${token}"`));
  return JSON.parse(marked, (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value,
  );
}

/** As it was read, indented for people if `indent` is given. */
export function writeJson(value: unknown, indent = 0): string {
  const mark = `${MARK}written `;
  let isMarked = false;
  // `this` has the value before `toJSON`, which not every browser can write without loss.
  const text = JSON.stringify(value, function (this: Record<string, unknown>, key: string, shown: unknown) {
    const each = this[key];
    if (typeof each !== "bigint") return shown;
    isMarked = true;
    return `${mark}${each}`;
  }, indent) ?? "null";
  return isMarked ? text.replaceAll(new RegExp(`"${mark}(-?\\d+)"`, "g"), "$1") : text;
}

/** A number as it was typed; null: not a number. Digits are never rounded away: see `isExact`. */
export function numberOf(text: string): number | bigint | null {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return null;
  const found = Number(text);
  if (/^[+-]?\d+$/.test(text) && !Number.isSafeInteger(found)) return BigInt(text.replace("+", ""));
  return Number.isFinite(found) ? found : null;
}

/** Whether a number keeps all digits that were typed. */
export function isExact(text: string): boolean {
  const found = numberOf(text);
  if (found === null || typeof found === "bigint") return true;
  return digitsOf(text) === digitsOf(String(found));
}

/** The digits without zeros at either end, sign and place: 1.50 and 15e-1 have the same. */
function digitsOf(text: string): string {
  return (text.toLowerCase().split("e")[0] ?? "").replaceAll(/[+\-.]/g, "").replaceAll(/^0+|0+$/g, "");
}
