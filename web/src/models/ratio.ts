/** Exact fractions: 0.1 is a tenth. */

export type Ratio = { top: bigint; bottom: bigint };

const WRITTEN = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?$/i;
const FRACTION = /^([+-]?\d+)\/(\d+)$/;

/** null: it is no number. */
export function ratioOf(value: unknown): Ratio | null {
  if (typeof value === "bigint") return { top: value, bottom: 1n };
  if (typeof value === "number") return Number.isFinite(value) ? ratioOf(String(value)) : null;
  if (typeof value !== "string") return null;
  const text = value.trim();
  const fraction = FRACTION.exec(text);
  if (fraction) return BigInt(fraction[2]!) === 0n ? null : { top: BigInt(fraction[1]!.replace("+", "")), bottom: BigInt(fraction[2]!) };
  const found = WRITTEN.exec(text);
  if (!found || (!found[2] && !found[3])) return null;
  const [, sign, whole = "", part = "", exponent = "0"] = found;
  const digits = BigInt((whole || "0") + part) * (sign === "-" ? -1n : 1n);
  const shift = Number(exponent) - part.length;
  return shift >= 0 ? { top: digits * 10n ** BigInt(shift), bottom: 1n } : { top: digits, bottom: 10n ** BigInt(-shift) };
}

/** Below 0: the left one is smaller. */
export function compareRatios(left: Ratio, right: Ratio): number {
  const difference = left.top * right.bottom - right.top * left.bottom;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

export function isMultiple(value: Ratio, step: Ratio): boolean {
  return step.top !== 0n && (value.top * step.bottom) % (value.bottom * step.top) === 0n;
}
