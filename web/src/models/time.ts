/** Times for people: how long, until when, and when exactly. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** `3 h 59 min`; from a day on the nearest day: `2 days`. */
export function duration(ms: number): string {
  const span = Math.abs(ms);
  if (span >= DAY) return plural(Math.round(span / DAY), "day");
  if (span >= HOUR) return join(Math.floor(span / HOUR), "h", Math.floor((span % HOUR) / MINUTE), "min");
  if (span >= MINUTE) return join(Math.floor(span / MINUTE), "min", Math.floor((span % MINUTE) / 1000), "s");
  if (span >= 1000) return `${Math.floor(span / 1000)} s`;
  return `${Math.round(span)} ms`;
}

function join(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

/** The larger unit alone, for a row: `3 h`, `2 days`, `now`. */
export function roughly(ms: number): string {
  const span = Math.abs(ms);
  if (span < MINUTE) return "now";
  if (span < HOUR) return `${Math.floor(span / MINUTE)} min`;
  if (span < DAY) return `${Math.floor(span / HOUR)} h`;
  return plural(Math.round(span / DAY), "day");
}

/** `16 Nov 03:38`, with the year if it is another one. */
export function shortTime(at: Date, now: Date, zone?: string): string {
  const sameYear = at.getFullYear() === now.getFullYear();
  return new Intl.DateTimeFormat("en-GB", {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: zone,
    ...(sameYear ? {} : { year: "numeric" }),
  })
    .format(at)
    .replace(",", "");
}

/** The local time with its zone, and the same in UTC. */
export function exactTime(at: Date, zone?: string): string {
  const local = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long", timeZone: zone }).format(at);
  return `${local} (${at.toISOString().replace(/\.\d+Z$/, "Z")})`;
}
