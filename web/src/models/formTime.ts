/** Dates and times as ISO 8601 has them, and their order. */
import { refuse } from "./formError";

/** `zoned`: whether it has an offset from UTC. What has one has no order with what has none. */
export type Ordered = { at: bigint; zoned: boolean };
type Clock = { micros: bigint; offset: bigint | null };

const DATE = /^(\d{4})-?(?:(\d{2})-?(\d{2})|W(\d{2})(?:-?(\d))?)$/;
const DATE_PART = /^(\d{4}-\d{2}-\d{2}|\d{8}|\d{4}-W\d{2}-\d|\d{4}W\d{3}|\d{4}-W\d{2}|\d{4}W\d{2})(?:[^](.*))?$/u;
const TIME = /^T?(\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d+))?)?)?(Z|[+-]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?)?$/;
const SECOND = 1_000_000n;
const DAY = 86_400_000;

/** Days since 1970; null: not a date. */
function daysOf(text: string): number | null {
  const found = DATE.exec(text);
  if (!found || !isEven(text)) return null;
  const [, year, month, day, week, weekday] = found.map(Number) as [number, number, number, number, number, number];
  if (year < 1) return null;
  if (found[2] === undefined) return weekDays(year, week, found[5] === undefined ? 1 : weekday);
  const at = dateOf(year, month - 1, day);
  return at.getUTCMonth() === month - 1 && at.getUTCDate() === day ? at.getTime() / DAY : null;
}

/** Dashes everywhere, or nowhere. */
function isEven(text: string): boolean {
  const dashes = text.split("-").length - 1;
  return dashes === 0 || (text.includes("W") ? dashes === (/W\d{2}./.test(text) ? 2 : 1) : dashes === 2);
}

function weekDays(year: number, week: number, weekday: number): number | null {
  if (week < 1 || week > 53 || weekday < 1 || weekday > 7) return null;
  const fourth = dateOf(year, 0, 4);
  const monday = fourth.getTime() / DAY - ((fourth.getUTCDay() + 6) % 7);
  const first = dateOf(year, 0, 1).getUTCDay();
  const isLeap = dateOf(year, 1, 29).getUTCMonth() === 1;
  if (week === 53 && first !== 4 && !(first === 3 && isLeap)) return null;
  return monday + (week - 1) * 7 + weekday - 1;
}

function dateOf(year: number, month: number, day: number): Date {
  const found = new Date(0);
  found.setUTCFullYear(year, month, day);
  return found;
}

function clockOf(text: string): Clock | null {
  const found = TIME.exec(text);
  if (!found) return null;
  const [, hour = "0", minute = "0", second = "0", fraction = "", zone] = found;
  const [clock = "", colons] = [text.slice(0, text.length - (zone?.length ?? 0)), text.includes(":")];
  if (colons && /\d{3}/.test(clock.replace(/[.,].*/, ""))) return null;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const micros = BigInt(Number(hour) * 3600 + Number(minute) * 60 + Number(second)) * SECOND + microsOf(fraction);
  if (zone === undefined) return { micros, offset: null };
  const offset = offsetOf(zone);
  return offset === null ? null : { micros, offset };
}

function microsOf(fraction: string): bigint {
  return BigInt(fraction.slice(0, 6).padEnd(6, "0"));
}

function offsetOf(zone: string): bigint | null {
  if (zone === "Z") return 0n;
  const [whole = "", fraction = ""] = zone.slice(1).replaceAll(":", "").split(/[.,]/);
  const [hour, minute, second] = [0, 2, 4].map((place) => Number(whole.slice(place, place + 2) || "0")) as [number, number, number];
  const size = BigInt(hour * 3600 + minute * 60 + second) * SECOND + microsOf(fraction);
  if (size >= 86_400n * SECOND) return null;
  return zone.startsWith("-") ? -size : size;
}

function momentOf(text: string): (Clock & { days: number }) | null {
  const found = DATE_PART.exec(text);
  if (!found) return null;
  const days = daysOf(found[1]!);
  const clock = found[2] === undefined ? { micros: 0n, offset: null } : found[2].startsWith("T") ? null : clockOf(found[2]);
  return days === null || clock === null ? null : { ...clock, days };
}

// ---- as they are stored

export function readDate(text: string): string {
  const days = daysOf(text);
  return days === null ? refuse("format", "notDate") : dateText(days);
}

export function readTime(text: string): string {
  const clock = clockOf(text);
  return clock === null ? refuse("format", "notTime") : clockText(clock);
}

export function readDatetime(text: string): string {
  const found = momentOf(text);
  if (found === null) return refuse("format", "notDatetime");
  if (found.offset === null) return refuse("format", "noZone");
  return `${dateText(found.days)}T${clockText(found)}`;
}

function dateText(days: number): string {
  const at = new Date(days * DAY);
  return `${String(at.getUTCFullYear()).padStart(4, "0")}-${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
}

function clockText({ micros, offset }: Clock): string {
  return spanText(micros, true) + (offset === null ? "" : `${offset < 0n ? "-" : "+"}${spanText(offset < 0n ? -offset : offset, false)}`);
}

function spanText(micros: bigint, withSeconds: boolean): string {
  const seconds = Number(micros / SECOND);
  const rest = micros % SECOND;
  const clock = `${two(Math.floor(seconds / 3600))}:${two(Math.floor(seconds / 60) % 60)}`;
  if (!withSeconds && seconds % 60 === 0 && rest === 0n) return clock;
  return `${clock}:${two(seconds % 60)}${rest === 0n ? "" : `.${String(rest).padStart(6, "0")}`}`;
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}

// ---- their order; null: not one

export function orderOf(kind: string, value: unknown): Ordered | null {
  if (typeof value !== "string") return null;
  if (kind === "date") {
    const days = daysOf(value);
    return days === null ? null : { at: BigInt(days), zoned: false };
  }
  const found = kind === "time" ? clockOf(value) : momentOf(value);
  if (found === null) return null;
  const days = "days" in found ? BigInt(Number(found.days)) * 86_400n * SECOND : 0n;
  return { at: days + found.micros - (found.offset ?? 0n), zoned: found.offset !== null };
}
