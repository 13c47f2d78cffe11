/** A list that is read page by page, while others change what it shows. Rows never move. */
import { type Row, merged } from "./decision";

export type Page<R> = { rows: R[]; next: string | null };

/** Which pages came before which: the server reads only forwards. The first page has the cursor "". */
export type Trail = Map<string, { before: string; rows: number }>;

export function before(trail: Trail, cursor: string): string | null {
  return trail.get(cursor)?.before ?? null;
}

/** How many rows are above the page of this cursor. */
export function rowsBefore(trail: Trail, cursor: string): number {
  let count = 0;
  for (let step = trail.get(cursor); step !== undefined; step = step.before ? trail.get(step.before) : undefined) count += step.rows;
  return count;
}

export type Listed<R> = { pages: readonly Page<R>[]; fresh: ReadonlySet<string>; gone: ReadonlySet<string> };

/**
 * What others changed, after the server was asked for it. `found`: as it is now, if the list would still have it.
 * `isNew`: whether a row that is not shown came in, and does not only stand further down.
 */
export function withChanges<R extends Row>(listed: Listed<R>, ids: Iterable<string>, found: ReadonlyMap<string, R>, isNew: (row: R) => boolean): Listed<R> {
  const shown = new Set(listed.pages.flatMap((page) => page.rows.map((row) => row.id)));
  const fresh = new Set(listed.fresh);
  const gone = new Set(listed.gone);
  let pages = listed.pages;
  for (const id of ids) {
    const row = found.get(id);
    if (row !== undefined) gone.delete(id);
    if (shown.has(id)) {
      if (row === undefined) gone.add(id);
      else pages = withRow(pages, row);
    } else if (row === undefined) fresh.delete(id);
    else if (isNew(row)) fresh.add(id);
  }
  return { pages, fresh, gone };
}

/** A row in place; an older version never replaces a newer one. */
export function withRow<R extends Row>(pages: readonly Page<R>[], row: R): Page<R>[] {
  return pages.map((page) => (page.rows.some((each) => each.id === row.id) ? { ...page, rows: merged(page.rows, row) } : page));
}

/** Of two readings of one thing, the newer. */
export function newest<R extends Row>(old: R | undefined, next: R): R {
  return old !== undefined && old.id === next.id && old.version > next.version ? old : next;
}
