/** The visits of a run as rows with bars, on an axis without its long pauses; and what stood at a record. */

export type Wait = { kind: string; since: string; until: string | null; about: string };
/** Visits inside a visit, which are read when it is opened. */
export type Folded = { within: string; visits: number; items: number; done: number; failed: number; open: number };
/** One more attempt of a visit. `error`: that of the attempt before it. */
export type Trial = { reason: string; attempt: number; at: string; wakesAt: string | null; seq: number; error: string };
export type TimelineVisit = {
  node: string;
  /** As people read it: `each[110]`. */
  name: string;
  scope: string;
  visit: number;
  state: string;
  startedAt: string;
  endedAt: string | null;
  waits: readonly Wait[];
  trials: readonly Trial[];
  attempts: number;
  error: string;
  /** The record with which it began; -1: not known, or of another run. */
  first: number;
  /** The record that ended the visit, or the latest about it; -1: there is none, or it is of another run. */
  seq: number;
  /** A fork brought it along: it has ended, in another run. */
  ofSource: boolean;
};
export type Point = { seq: number; at: string };
export type Bar = { kind: "attempt" | "wait"; from: number; to: number; attempt: number; wait: string; about: string };
export type Axis = { place: (time: number) => number; cuts: { from: number; to: number; ms: number }[] };
export type Row<V> = { visit: V; depth: number; open: boolean };
export type Mark = { kind: string; seq: number; at: string; node: string; worker: string };

/** A visit, or a wait, at a breakpoint: a person is not asked anything, they continue the run. */
export const PAUSED = "at_breakpoint";

const CUT_FROM = 0.05;
const CUT_WIDTH = 4;
const MOST_DEPTH = 8;

const msOf = (at: string): number => new Date(at).getTime();

/** Steps are shorter than a millisecond, and a Date has no less. */
function microsOf(at: string): number {
  const fraction = /\.(\d+)/.exec(at)?.[1] ?? "";
  return Math.floor(msOf(at) / 1000) * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}

/** After these the handler continues: there is no new attempt. */
const GOES_ON = new Set(["woke", "continued", "withdrawn"]);

/** A bar for each attempt, and one for each wait between or inside of them. While a run had failed there is none. */
export function barsOf(visit: TimelineVisit, now: number): Bar[] {
  const begins = visit.trials.filter((each) => !GOES_ON.has(each.reason)).map((each) => msOf(each.wakesAt ?? each.at));
  const waits = visit.waits.toSorted((left, right) => msOf(left.since) - msOf(right.since));
  const started = msOf(visit.startedAt);
  // The clock of the page may be behind what it has just read.
  const end = visit.endedAt ? msOf(visit.endedAt) : Math.max(now, started, ...waits.map((each) => msOf(each.since)));
  const bars: Bar[] = [];
  let from = started;
  const numberAt = (time: number) => 1 + begins.filter((each) => each <= time).length;
  const work = (to: number) => {
    for (const begin of [...begins.filter((each) => each > from && each < to), to]) {
      if (begin > from) bars.push({ kind: "attempt", from, to: begin, attempt: numberAt(from), wait: "", about: "" });
      from = Math.max(from, begin);
    }
  };
  for (const wait of waits) {
    work(Math.min(end, msOf(wait.since)));
    const to = Math.max(from, Math.min(end, wait.until ? msOf(wait.until) : end));
    if (wait.kind !== "failed" && (to > from || wait.until === null)) bars.push({ kind: "wait", from, to, attempt: numberAt(from), wait: wait.kind, about: wait.about });
    from = to;
  }
  work(end);
  const begun = [started, ...begins.filter((each) => each <= end)];
  // An attempt that took no time has a bar too; a visit that only waits has none.
  begun.forEach((at, place) => {
    const isThere = bars.some((each) => each.kind === "attempt" && each.attempt === place + 1);
    if (!isThere && (bars.length === 0 || begun.length > 1)) bars.push({ kind: "attempt", from: at, to: at, attempt: place + 1, wait: "", about: "" });
  });
  return bars;
}

/** How long a visit worked and waited, in milliseconds; the time in which its run had failed is not its own. */
export function lengthOf(bars: readonly Bar[]): number {
  return bars.reduce((sum, each) => sum + each.to - each.from, 0);
}

export function allBars(visits: readonly TimelineVisit[], now: number): Bar[] {
  const bars: Bar[] = [];
  for (const visit of visits) for (const bar of barsOf(visit, now)) bars.push(bar);
  return bars;
}

/** Places in percent. A pause of more than 5 % of the whole, in which nothing works, is cut to a fixed width. */
export function axisOf(bars: readonly Bar[]): Axis {
  if (bars.length === 0) return { place: () => 0, cuts: [] };
  let start = Infinity;
  let end = -Infinity;
  for (const bar of bars) {
    start = Math.min(start, bar.from);
    end = Math.max(end, bar.to);
  }
  end = Math.max(end, start + 1);
  const gaps = pausesOf(bars, start, end).filter((gap) => gap.to - gap.from > (end - start) * CUT_FROM);
  const worked = end - start - gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const room = 100 - gaps.length * CUT_WIDTH;
  const place = (time: number): number => {
    let at = 0;
    let before = start;
    for (const gap of gaps) {
      if (time <= gap.from) break;
      at += ((gap.from - before) / worked) * room;
      if (time < gap.to) return at + ((time - gap.from) / (gap.to - gap.from)) * CUT_WIDTH;
      at += CUT_WIDTH;
      before = gap.to;
    }
    return Math.max(0, Math.min(100, at + ((Math.min(time, end) - before) / Math.max(1, worked)) * room));
  };
  return { place, cuts: gaps.map((gap) => ({ from: place(gap.from), to: place(gap.to), ms: gap.to - gap.from })) };
}

function pausesOf(bars: readonly Bar[], start: number, end: number): { from: number; to: number }[] {
  const busy = bars.filter((each) => each.kind === "attempt").toSorted((left, right) => left.from - right.from);
  const found: { from: number; to: number }[] = [];
  let last = start;
  for (const bar of busy) {
    if (bar.from > last) found.push({ from: last, to: bar.from });
    last = Math.max(last, bar.to);
  }
  // Only waits: nothing to compare them with, so nothing is cut.
  if (busy.length > 0 && end > last) found.push({ from: last, to: end });
  return found;
}

type Foldable = { inside: Folded | null };

/** A map and a sub-flow are one row until they are opened; then what is inside follows, as far as it is read. */
export function rowsOf<V extends Foldable>(visits: readonly V[], open: ReadonlySet<string>, inside: ReadonlyMap<string, readonly V[]>, depth = 0): Row<V>[] {
  const rows: Row<V>[] = [];
  for (const visit of visits) {
    const within = visit.inside?.within ?? "";
    const isOpen = within !== "" && open.has(within) && depth < MOST_DEPTH;
    rows.push({ visit, depth, open: isOpen });
    if (isOpen) for (const row of rowsOf(inside.get(within) ?? [], open, inside, depth + 1)) rows.push(row);
  }
  return rows;
}

/** A visit as it was at a record, without anything that came later; null: it had not begun. Without a record, as it is. */
export function visitAt<V extends TimelineVisit>(visit: V, point: Point | null): V | null {
  if (point === null || visit.ofSource || (visit.seq >= 0 && visit.seq <= point.seq)) return visit;
  const at = microsOf(point.at);
  const isPast = (seq: number, time: string) => (seq >= 0 ? seq <= point.seq : microsOf(time) <= at);
  if (!isPast(visit.first, visit.startedAt)) return null;
  const trials = visit.trials.filter((each) => isPast(each.seq, each.at));
  const waits = visit.waits.filter((each) => microsOf(each.since) <= at).map((each) => (each.until !== null && microsOf(each.until) > at ? { ...each, until: null } : each));
  const open = waits.findLast((each) => each.until === null);
  const attempts = Math.max(1, ...trials.map((each) => each.attempt));
  if (open?.kind === "failed") {
    const error = visit.trials[trials.length]?.error ?? visit.error;
    return { ...visit, trials, waits: waits.filter((each) => each !== open), attempts, error, state: "failed", endedAt: open.since };
  }
  return { ...visit, trials, waits, attempts, error: "", state: stateIn(open), endedAt: null };
}

function stateIn(open: Wait | undefined): string {
  if (open === undefined) return "running";
  if (open.kind === PAUSED) return PAUSED;
  return open.kind === "person" ? "asking" : "waiting";
}

/** What a visit was at a record; `later`: not begun. */
export function stateAt(visit: TimelineVisit, point: Point | null): string {
  return visitAt(visit, point)?.state ?? "later";
}

/** The step to show: the one that was chosen, else the one of the record, else the one that failed last. */
export function stepShown<V extends TimelineVisit>(visits: readonly V[], step: number | undefined, at: number | undefined): V | null {
  if (step !== undefined) return visits.find((each) => each.seq === step) ?? null;
  if (at !== undefined) return visitOfRecord(visits, at, "");
  return visits.findLast((each) => each.seq >= 0 && each.state === "failed") ?? null;
}

/** The visit that a record is about: the one of its node that had begun by then; without a name, the one that ended
 * last by then. */
export function visitOfRecord<V extends TimelineVisit>(visits: readonly V[], at: number, name: string): V | null {
  // Of what was pruned only the end is known.
  const begun = (each: V) => (each.first >= 0 ? each.first : each.seq);
  if (name) return visits.findLast((each) => each.name === name && begun(each) >= 0 && begun(each) <= at) ?? null;
  let found: V | null = null;
  for (const each of visits) if (each.seq >= 0 && each.seq <= at && each.seq > (found?.seq ?? -1)) found = each;
  return found;
}

/** Whether changes can be told apart: a visit that began before the readable history has no record until it goes on. */
export function canContinue(visits: readonly TimelineVisit[]): boolean {
  return visits.every((each) => each.first >= 0 || each.ofSource || each.endedAt !== null);
}

/** Visits as they are now, from those known before and those that changed since; in the order of their start. */
export function withChanges<V extends TimelineVisit>(old: readonly V[], changed: readonly V[]): V[] {
  const fresh = new Map(changed.map((each) => [identityOf(each), each]));
  const found = old.map((each) => {
    const identity = identityOf(each);
    const now = fresh.get(identity);
    fresh.delete(identity);
    return now ?? each;
  });
  const added = [...fresh.values()];
  const last = found.at(-1)?.startedAt ?? "";
  const inOrder = added.every((each) => Date.parse(each.startedAt) >= Date.parse(last));
  found.push(...added);
  return inOrder || last === "" ? found : found.toSorted((left, right) => Date.parse(left.startedAt) - Date.parse(right.startedAt));
}

/** The number of a visit may become known only after its start; the record with which it began is its own. */
function identityOf(visit: TimelineVisit): string {
  return `${visit.ofSource ? "source " : ""}${visit.node} ${visit.first < 0 ? `visit ${visit.visit}` : visit.first}`;
}
