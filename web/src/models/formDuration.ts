/** Durations: seconds, "1h30m", "PT15M". */
import { FieldValueError, refuse, words } from "./formError";
import { firstOf, lengthOf, numberText, quoted, strip } from "./pythonText";
import { type Ratio, compareRatios, ratioOf } from "./ratio";

const MICROS: Record<string, bigint> = { w: 604_800_000_000n, d: 86_400_000_000n, h: 3_600_000_000n, m: 60_000_000n, s: 1_000_000n, ms: 1_000n };
const NUMBER = "[0-9]+(?:\\.[0-9]+)?";
const PARTS = new RegExp(`(${NUMBER})\\s*(ms|[wdhms])(?![a-zA-Z])\\s*`, "y");
const ISO_NUMBER = "([0-9]+(?:[.,][0-9]+)?)";
const ISO = new RegExp(`^P(?=.)(?:${ISO_NUMBER}W)?(?:${ISO_NUMBER}D)?(?:T(?=.)(?:${ISO_NUMBER}H)?(?:${ISO_NUMBER}M)?(?:${ISO_NUMBER}S)?)?$`);
const LONGEST = 100;
/** 1,000 years. */
const MOST = 365_000n * 86_400_000_000n;

type Problem = Parameters<typeof words>[0];

class Unreadable extends Error {
  constructor(readonly problem: Problem) {
    super(problem);
  }
}

/** In microseconds. Throws FieldValueError. */
export function durationOf(value: unknown): bigint {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "bigint") return refuse("type", "notDuration");
  try {
    const found = typeof value === "string" ? textDuration(value) : rounded(value, 1_000_000n);
    if (found < 0n) throw new Unreadable("durationNegative");
    if (found > MOST) throw new Unreadable("durationHuge");
    return found;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw unreadable(value, error.problem);
  }
}

function unreadable(value: string | number | bigint, problem: Problem): FieldValueError {
  const text = typeof value === "string" ? value : numberText(value);
  const shown = lengthOf(text) <= LONGEST ? text : `${firstOf(text, LONGEST)}…`;
  const message = words("badDuration", {
    text: quoted(shown), problem: words(problem, { most: LONGEST }), examples: words("durationExamples"),
  });
  return new FieldValueError("format", firstOf(message, 300));
}

function textDuration(text: string): bigint {
  if (lengthOf(text) > LONGEST) throw new Unreadable("durationLong");
  const body = strip(text);
  if (new RegExp(`^${NUMBER}$`).test(body)) return rounded(body, MICROS["s"]!);
  return body.startsWith("P") ? isoDuration(body) : unitDuration(body);
}

function unitDuration(body: string): bigint {
  const parts: [string, string][] = [];
  PARTS.lastIndex = 0;
  let place = 0;
  for (let found = PARTS.exec(body); found; found = PARTS.exec(body)) {
    parts.push([found[1]!, found[2]!]);
    place = PARTS.lastIndex;
  }
  if (place < body.length || parts.length === 0) {
    throw new Unreadable(body.startsWith("-") ? "durationNegative" : /[0-9]\s*b/.test(body) ? "durationBusiness" : "durationUnit");
  }
  return total(parts);
}

function isoDuration(body: string): bigint {
  const found = ISO.exec(body);
  if (!found) throw new Unreadable(/^P[0-9.,]+[YM]/.test(body) ? "durationCalendar" : "durationIso");
  const units = ["w", "d", "h", "m", "s"];
  return total(found.slice(1).flatMap((number, place) => (number === undefined ? [] : [[number.replace(",", "."), units[place]!] as [string, string]])));
}

function total(parts: readonly [string, string][]): bigint {
  const sizes = parts.map(([, unit]) => MICROS[unit]!);
  if (sizes.some((size, place) => place > 0 && sizes[place - 1]! <= size)) throw new Unreadable("durationOrder");
  if (parts.slice(0, -1).some(([number]) => number.includes("."))) throw new Unreadable("durationFraction");
  // Rounded once, at the end: only the last part has a fraction.
  return parts.reduce((sum, [number], place) => sum + rounded(number, sizes[place]!), 0n);
}

/** To the nearest microsecond, halves to the even one. */
function rounded(number: string | number | bigint, size: bigint): bigint {
  const exact = ratioOf(number);
  if (exact === null) throw new Unreadable("durationUnit");
  const top = exact.top * size;
  const floor = top >= 0n ? top / exact.bottom : -((-top + exact.bottom - 1n) / exact.bottom);
  const twice: Ratio = { top: 2n * (top - floor * exact.bottom), bottom: exact.bottom };
  const half = compareRatios(twice, { top: 1n, bottom: 1n });
  return half > 0 || (half === 0 && floor % 2n !== 0n) ? floor + 1n : floor;
}
