/** Times for people: how long, until when, and when exactly. */
import { time } from "@/locales/en/time";
import { textOf } from "@/locales/text";

const t = textOf(time);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The person's choice; without one the browser's zone, and the forms of the specification. */
const formats: { zone: string | undefined; language: string } = { zone: undefined, language: "en-GB" };

export function setFormats(zone: string | null, language: string | null): void {
  formats.zone = isZone(zone) ? zone : undefined;
  formats.language = language ?? "en-GB";
}

function isZone(zone: string | null): zone is string {
  try {
    return zone !== null && Boolean(new Intl.DateTimeFormat("en", { timeZone: zone }));
  } catch {
    return false;
  }
}

const made = new Map<string, Intl.DateTimeFormat>();

/** Making one takes longer than using it a hundred times. */
function formatter(language: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = language + JSON.stringify(options);
  const found = made.get(key) ?? new Intl.DateTimeFormat(language, options);
  made.set(key, found);
  return found;
}

/** `3 h 59 min`, `1.5 s`; from a day on the nearest day: `2 days`. */
export function duration(ms: number): string {
  const span = Math.abs(ms);
  if (span >= DAY) return t("days", { count: Math.round(span / DAY) });
  if (span >= HOUR) return two("hours", "hoursMinutes", Math.floor(span / HOUR), Math.floor((span % HOUR) / MINUTE));
  if (span >= MINUTE) return two("minutes", "minutesSeconds", Math.floor(span / MINUTE), Math.floor((span % MINUTE) / 1000));
  if (span >= 10_000) return t("seconds", { count: Math.floor(span / 1000) });
  if (span >= 1000) return t("seconds", { count: Math.floor(span / 100) / 10 });
  return t("milliseconds", { count: Math.round(span) });
}

function two(alone: "hours" | "minutes", both: "hoursMinutes" | "minutesSeconds", count: number, rest: number): string {
  return rest === 0 ? t(alone, { count }) : t(both, { count, rest });
}

/** The larger unit alone, for a row: `3 h`, `2 days`, `now`. */
export function roughly(ms: number): string {
  const span = Math.abs(ms);
  if (span < MINUTE) return t("now");
  if (span < HOUR) return t("minutes", { count: Math.floor(span / MINUTE) });
  if (span < DAY) return t("hours", { count: Math.floor(span / HOUR) });
  return t("days", { count: Math.round(span / DAY) });
}

/** `16 Nov 03:38`, with the year if it is another one, and with seconds if they are asked for. */
export function shortTime(at: Date, now: Date, { zone = formats.zone, seconds = false }: { zone?: string; seconds?: boolean } = {}): string {
  const sameYear = yearOf(at, zone) === yearOf(now, zone);
  return formatter(formats.language, {
    day: "numeric",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: zone,
    ...(seconds ? { second: "2-digit" } : {}),
    ...(sameYear ? {} : { year: "numeric" }),
  })
    .format(at)
    .replace(/, (?=\d\d?:)/, " ");
}

const STAMP = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;

/** A text of the server with its times as people read them. */
export function withShortTimes(text: string, now: Date, zone = formats.zone): string {
  return text.replaceAll(STAMP, (stamp) => {
    const at = new Date(stamp);
    return Number.isNaN(at.getTime()) ? stamp : shortTime(at, now, { seconds: true, ...(zone === undefined ? {} : { zone }) });
  });
}

/** `10:41` */
export function clock(at: Date, zone = formats.zone): string {
  return formatter(formats.language, { hour: "2-digit", minute: "2-digit", timeZone: zone }).format(at);
}

/** `16 Nov` */
export function shortDay(at: Date, zone = formats.zone): string {
  return formatter(formats.language, { day: "numeric", month: "short", timeZone: zone }).format(at);
}

function yearOf(at: Date, zone: string | undefined): string {
  return formatter("en", { year: "numeric", timeZone: zone }).format(at);
}

/** The local time with its zone, and the same in UTC. */
export function exactTime(at: Date, zone = formats.zone): string {
  const local = formatter(formats.language, { dateStyle: "medium", timeStyle: "long", timeZone: zone }).format(at);
  return `${local} (${at.toISOString().replace(/\.\d+Z$/, "Z")})`;
}

/** What a field for a local time says, as an instant; empty: none. In an hour that exists twice, the first. */
export function instantOf(local: string, zone = formats.zone): string | null {
  const wall = Date.parse(`${local}Z`);
  if (local === "" || Number.isNaN(wall)) return null;
  // The offset at an instant near it, then at the instant itself: they differ near a change of the clock.
  const near = wall - offsetAt(wall - offsetAt(wall, zone), zone);
  const early = wall - offsetAt(near - HOUR, zone);
  const isSame = early < near && early + offsetAt(early, zone) === wall;
  return new Date(isSame ? early : near).toISOString();
}

/** How far the clock of the zone is ahead of UTC then, in milliseconds. */
export function offsetAt(at: number, zone = formats.zone): number {
  const parts = formatter("en", {
    timeZone: zone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric",
  }).formatToParts(at);
  const part = (type: string) => Number(parts.find((each) => each.type === type)?.value);
  return Date.UTC(part("year"), part("month") - 1, part("day"), part("hour"), part("minute"), part("second")) - Math.floor(at / 1000) * 1000;
}
