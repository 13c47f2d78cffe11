/** The visits of a run as rows with bars, on an axis without its long pauses; and what stood at a record. */

export type Wait = { kind: string; since: string; until: string | null; about: string };
export type TimelineVisit = {
  node: string;
  scope: string;
  visit: number;
  state: string;
  startedAt: string;
  endedAt: string | null;
  waits: readonly Wait[];
  /** The record that ended the visit; -1 while it is open. */
  seq: number;
};
export type Point = { seq: number; at: string };
export type Bar = { kind: "attempt" | "wait"; from: number; to: number; attempt: number; wait: string; about: string };
export type Axis = { place: (time: number) => number; cuts: { from: number; to: number; ms: number }[] };
export type Row<V> = { kind: "visit"; visit: V } | { kind: "map"; scope: string; own: V | null; visits: V[]; open: boolean };

const CUT_FROM = 0.05;
const CUT_WIDTH = 4;

const msOf = (at: string): number => new Date(at).getTime();

/** Steps are shorter than a millisecond, and a Date has no less. */
function microsOf(at: string): number {
  const fraction = /\.(\d+)/.exec(at)?.[1] ?? "";
  return Math.floor(msOf(at) / 1000) * 1_000_000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}

/** A bar for each attempt, and one for each wait between or inside of them. */
export function barsOf(visit: TimelineVisit, now: number): Bar[] {
  const end = visit.endedAt ? msOf(visit.endedAt) : now;
  const bars: Bar[] = [];
  let from = msOf(visit.startedAt);
  let attempt = 1;
  const add = (kind: Bar["kind"], to: number, wait = "", about = "") => {
    if (to > from || (kind === "attempt" && to === end)) bars.push({ kind, from, to: Math.max(from, to), attempt, wait, about });
    from = Math.max(from, to);
  };
  for (const wait of visit.waits.toSorted((left, right) => msOf(left.since) - msOf(right.since))) {
    add("attempt", Math.min(end, msOf(wait.since)));
    add("wait", Math.min(end, wait.until ? msOf(wait.until) : end), wait.kind, wait.about);
    if (wait.kind === "retry") attempt += 1;
  }
  if (from < end || bars.length === 0) add("attempt", end);
  return bars;
}

/** Places in percent. A pause of more than 5 % of the whole, in which nothing works, is cut to a fixed width. */
export function axisOf(bars: readonly Bar[]): Axis {
  if (bars.length === 0) return { place: () => 0, cuts: [] };
  const start = Math.min(...bars.map((each) => each.from));
  const end = Math.max(...bars.map((each) => each.to), start + 1);
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

/** The map that an item belongs to: `prices` of `prices[3]`, `prices#3` or `prices/3`. */
export function mapOf(scope: string): string {
  const found = /^(.*?)[[#/:.]\d+\]?/.exec(scope);
  return found ? found[1]! : "";
}

/** A map and its items are one row until it is opened. */
export function rowsOf<V extends { node: string; scope: string }>(visits: readonly V[], open: ReadonlySet<string>): Row<V>[] {
  const items = new Map<string, V[]>();
  for (const visit of visits) {
    const scope = mapOf(visit.scope);
    if (scope) items.set(scope, [...(items.get(scope) ?? []), visit]);
  }
  const shown = new Set<string>();
  return visits.flatMap((visit): Row<V>[] => {
    const scope = mapOf(visit.scope) || visit.node;
    const inside = items.get(scope);
    if (inside === undefined) return [{ kind: "visit", visit }];
    if (shown.has(scope)) return [];
    shown.add(scope);
    const isOpen = open.has(scope);
    const own = visits.find((each) => each.node === scope) ?? null;
    const row: Row<V> = { kind: "map", scope, own, visits: inside, open: isOpen };
    return isOpen ? [row, ...inside.map((each) => ({ kind: "visit" as const, visit: each }))] : [row];
  });
}

/** What a visit was at a record; `later`: not begun. Without a record, as it is now. */
export function stateAt(visit: TimelineVisit, point: Point | null): string {
  if (point === null) return visit.state;
  if (visit.seq >= 0 && visit.seq <= point.seq) return visit.state;
  return microsOf(visit.startedAt) <= microsOf(point.at) ? openState(visit) : "later";
}

function openState(visit: TimelineVisit): string {
  return visit.endedAt === null ? visit.state : "running";
}

/** Of each node that has begun, by its last visit. */
export function nodeStatesAt(visits: readonly TimelineVisit[], point: Point | null): Map<string, string> {
  const found = new Map<string, string>();
  for (const visit of visits) {
    const state = stateAt(visit, point);
    if (state !== "later") found.set(visit.node, state);
  }
  return found;
}

/** The step to show: the one that was chosen, else the one of the record, else the one that failed last. */
export function stepShown<V extends TimelineVisit>(visits: readonly V[], step: number | undefined, at: number | undefined): V | null {
  const ended = visits.filter((each) => each.seq >= 0);
  if (step !== undefined) return ended.find((each) => each.seq === step) ?? null;
  if (at !== undefined) return ended.findLast((each) => each.seq <= at) ?? null;
  return ended.findLast((each) => each.state === "failed") ?? null;
}

/** The place in the list of checkpoints; `where` as in the address, else the last. */
export function placeOf(points: readonly Point[], at: number | undefined): number {
  return Math.max(0, at === undefined ? points.length - 1 : points.findLastIndex((each) => each.seq <= at));
}

/** The node that a title of the drawing is about: `pay. failed` is `pay`. The longest name that fits. */
export function nodeOfTitle(title: string, names: readonly string[]): string {
  const fits = names.filter((name) => title === name || title.startsWith(`${name}. `));
  return fits.toSorted((left, right) => right.length - left.length)[0] ?? "";
}

/** The node that an edge of the drawing leads to: `price to pay: big (taken)` is `pay`. */
export function targetOfTitle(title: string, names: readonly string[]): string {
  const fits = names.filter((name) => new RegExp(` to ${name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")}(: | \\(|$)`).test(title));
  return fits.toSorted((left, right) => right.length - left.length)[0] ?? "";
}
