/** The records of a run that a reader steps through. */
import type { Mark } from "./timeline";

export type Records = { first: number; last: number };
/** A record by its columns. `name`: of its node; empty: it is about the whole run. */
export type JournalRecord = { seq: number; at: string; kind: string; name: string; attempt: number };

/** The record of the address, within those that there are; undefined is the latest. */
export function recordAt(records: Records, at: number | undefined): number {
  return at === undefined ? records.last : Math.max(records.first, Math.min(records.last, at));
}

/** The next failure, decision or resume after a record, or the one before it; none: null. */
export function nextMark(marks: readonly Mark[], record: number, by: 1 | -1): Mark | null {
  const known = marks.filter((each) => each.seq >= 0);
  return (by > 0 ? known.find((each) => each.seq > record) : known.findLast((each) => each.seq < record)) ?? null;
}

/** Records are read in pages; this is the first one of the page with a record. */
export const RECORDS = 200;

export function pageOf(record: number): number {
  return Math.floor(record / RECORDS) * RECORDS;
}
