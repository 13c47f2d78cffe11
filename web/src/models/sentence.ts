/** A sentence of the server with times in it, which it writes in UTC: the reader has them in their own zone. */
import { withShortTimes } from "./time";

export type Part = string | { at: string };
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** `times`: moments that the text may have. */
export function partsOf({ text, times }: { text: string; times: readonly string[] }): Part[] {
  return times.reduce<Part[]>((parts, at) => parts.flatMap((each) => (typeof each === "string" ? cut(each, at) : [each])), [text]);
}

function cut(text: string, at: string): Part[] {
  const written = inUtc(at);
  const place = written === "" ? -1 : text.indexOf(written);
  if (place < 0) return [text];
  return [text.slice(0, place), { at }, text.slice(place + written.length)];
}

/** As the server writes it: `16 Nov 03:38 UTC`. */
function inUtc(at: string): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "";
  return `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.toISOString().slice(11, 16)} UTC`;
}

type Asked = { id: string; options: readonly { id: string; label: string }[] };

/** Why something was refused. The reader sees which question it is (`what`), knows people and options by their names, and
 * has times of their own. */
export function reasonText(text: string, hold: Asked, what: string, now: Date): string {
  const named = hold.options.reduce((read, { id, label }) => (label ? read.replaceAll(`'${id}'`, `“${label}”`) : read), text);
  return withShortTimes(named.replaceAll(`hold ${hold.id}`, what).replaceAll(/\buser:(?=\S)/g, ""), now);
}

const NAMES = ["expires_at", "until", "to"];

/** The moments that the data of a record have. The audit keeps some as microseconds. */
export function momentsIn(data: unknown): string[] {
  if (typeof data !== "object" || data === null) return [];
  const found = data as Record<string, unknown>;
  return NAMES.flatMap((name) => momentOf(found[name]));
}

function momentOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "number" && typeof value !== "bigint") return [];
  const date = new Date(Number(value) / 1_000);
  return Number.isNaN(date.getTime()) ? [] : [date.toISOString()];
}
