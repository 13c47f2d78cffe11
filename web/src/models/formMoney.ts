/** Amounts of money, read by locale as decimal text: never a double. */
import { numberText, strip } from "./pythonText";

const COMMA = new Set("de nl fr es it pt da nb no sv fi pl cs sk ru uk tr id el hu ro".split(" "));
const PLAIN = /^([+-]?)([0-9]{1,30})(\.[0-9]{1,12})?$/;
const LARGEST = 10n ** 30n;

/** `1234.56`; null: it is not an amount, or ambiguous. Without a locale the point is the decimal mark. */
export function amountOf(given: unknown, locale: string): string | null {
  const isText = typeof given === "string";
  if (!isText && typeof given !== "number" && typeof given !== "bigint") return null;
  const plain = isText ? ungrouped(strip(given), locale) : isHuge(given) ? null : numberText(given);
  const found = plain === null ? null : PLAIN.exec(plain);
  if (!found) return null;
  const [, sign, whole = "", part = ""] = found;
  return `${sign === "-" ? "-" : ""}${whole.replace(/^0+(?=\d)/, "")}${part}`;
}

function isHuge(given: number | bigint): boolean {
  return typeof given === "bigint" ? given >= LARGEST || given <= -LARGEST : !(Math.abs(given) < 1e30);
}

function ungrouped(text: string, locale: string): string | null {
  if (Array.from(text).length > 60) return null;
  const isComma = COMMA.has((locale.split(/[-_]/)[0] ?? "").toLowerCase());
  const [mark, group] = isComma ? [",", "."] : [".", ","];
  const clean = text.replaceAll(/[ \u00a0\u202f'\u2019_]/g, "");
  const place = clean.indexOf(mark);
  const whole = place < 0 ? clean : clean.slice(0, place);
  const part = place < 0 ? "" : clean.slice(place + 1);
  if (part.includes(group) || part.includes(mark)) return null;
  const groups = whole.replace(/^[+-]+/, "").split(group);
  const [first = "", ...others] = groups;
  if (others.length > 0 && (first.length < 1 || first.length > 3 || others.some((each) => each.length !== 3))) return null;
  return whole.replaceAll(group, "") + (place < 0 ? "" : `.${part}`);
}
