/** The list of a view: keyset pages, and what changes meanwhile without moving a row. */
import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffectEvent, useMemo, useRef, useState } from "react";
import { serverNow } from "@/components/useNow";
import { useHoldBatches, useMissed } from "@/live/useLive";
import { type Page, type Trail, before, rowsBefore, withChanges, withRow } from "@/models/list";
import { type Hold, PAGE, type View, countOpen, countWaiting, findHolds, getHold, listHolds } from "@/services/holds";

export const MOST_ROWS = 2000;
const NONE: ReadonlySet<string> = new Set();
/** What came in and what left since the list was read, at `since`. */
type Meanwhile = { list: string; since: number; fresh: ReadonlySet<string>; gone: ReadonlySet<string> };
type Pages = InfiniteData<Page<Hold>, string>;

export function useHolds(view: View, q: string) {
  const client = useQueryClient();
  const key = useMemo(() => ["holds", "list", view, q], [view, q]);
  const list = key.join(" ");
  const [meanwhile, setMeanwhile] = useState<Meanwhile>(() => nothing(list));
  const since = meanwhile.list === list ? meanwhile : nothing(list);
  if (since !== meanwhile) setMeanwhile(since);
  const trail = useRef<{ list: string; steps: Trail }>({ list: "", steps: new Map() });
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: async ({ pageParam }) => {
      const page = await listHolds(view, q, pageParam || null);
      if (trail.current.list !== list) trail.current = { list, steps: new Map() };
      if (page.next) trail.current.steps.set(page.next, { before: pageParam, rows: page.rows.length });
      return page;
    },
    initialPageParam: "",
    getNextPageParam: (last: Page<Hold>) => last.next,
    getPreviousPageParam: (_first: Page<Hold>, _all: Page<Hold>[], cursor: string) => before(trail.current.steps, cursor),
    maxPages: MOST_ROWS / PAGE,
    // Rows do not move under the reader: the list is read again when they ask for it, or come back to it.
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.rows) ?? [], [query.data]);
  const first = String(query.data?.pageParams[0] ?? "");

  const apply = useEffectEvent((ids: readonly string[], found: ReadonlyMap<string, Hold>, isNew: (row: Hold) => boolean) => {
    const data = client.getQueryData<Pages>(key);
    if (data === undefined) return;
    const shown = new Set(data.pages.flatMap((page) => page.rows.map((row) => row.id)));
    const next = withChanges({ pages: data.pages, ...since }, ids, found, isNew);
    // In an empty list nothing moves.
    if (shown.size === 0 && next.fresh.size > 0) return void refresh();
    client.setQueryData<Pages>(key, { ...data, pages: [...next.pages] });
    setMeanwhile({ list, since: since.since, fresh: next.fresh, gone: next.gone });
    // A row that left says what became of it.
    for (const id of ids) if (shown.has(id) && !found.has(id)) void renew(id);
  });

  useHoldBatches(list, async (heardFor, changes) => {
    const found = await findHolds(view, q, [...new Set(changes.map((each) => each.run))]);
    if (heardFor !== list) return;
    const moved = new Set(changes.filter((each) => /reassigned|escalated/.test(each.action)).map((each) => each.hold));
    const isNew = (row: Hold) => !query.hasNextPage || moved.has(row.id) || new Date(row.createdAt).getTime() > since.since;
    apply(changes.map((each) => each.hold), new Map(found.map((each) => [each.id, each])), isNew);
  });

  const reread = async () => {
    // Something may have been missed while there was no connection: the pages are read again, and nothing moves.
    const found = new Map<string, Hold>();
    let cursor: string | null = first;
    for (let place = 0; place < (query.data?.pages.length ?? 0) && cursor !== null; place += 1) {
      const page: Page<Hold> = await listHolds(view, q, cursor || null);
      for (const row of page.rows) found.set(row.id, row);
      cursor = page.next;
    }
    const missing = [...new Set(rows.filter((row) => !found.has(row.id)).map((row) => row.run))];
    for (const row of missing.length > 0 ? await findHolds(view, q, missing) : []) found.set(row.id, row);
    apply([...new Set([...rows.map((row) => row.id), ...since.fresh, ...found.keys()])], found, () => true);
    await client.invalidateQueries({ queryKey: ["holds", "count"] });
  };
  useMissed(() => void reread().catch(() => {}));

  async function renew(id: string): Promise<void> {
    const hold = await getHold(id).catch(() => null);
    if (hold) put(hold);
  }

  /** After they were changed here, whether or not the connection is live. */
  async function renewAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await renew(id);
  }

  function put(hold: Hold): void {
    client.setQueryData<Pages>(key, (data) => data && { ...data, pages: withRow(data.pages, { ...hold, comments: hold.comments ?? commentsOf(data, hold.id) }) });
  }

  async function refresh(): Promise<void> {
    setMeanwhile(nothing(list));
    await client.resetQueries({ queryKey: key });
    await client.invalidateQueries({ queryKey: ["holds", "count"] });
  }

  /** How many rows were read and are not kept. */
  const above = () => rowsBefore(trail.current.steps, first);
  return { query, rows, above, put, renewAll, refresh, fresh: since.fresh.size, gone: since.gone };
}

/** Only lists count them: one that was read alone keeps the number of its row. */
function commentsOf(data: Pages, id: string): number | null {
  return data.pages.flatMap((page) => page.rows).find((row) => row.id === id)?.comments ?? null;
}

function nothing(list: string): Meanwhile {
  return { list, since: serverNow(), fresh: NONE, gone: NONE };
}

export function countQuery(view: View, q = "") {
  return { queryKey: ["holds", "count", view, q], queryFn: () => countOpen(view, q), staleTime: 5_000 };
}

/** Of a saved view what still waits, also where it lists what was decided, unless its search names a status. */
export function waitingQuery(view: View, q = "") {
  return { queryKey: ["holds", "count", "waiting", view, q], queryFn: () => countWaiting(view, q), staleTime: 5_000 };
}

/** The server counts only what its index has. */
export function isCountable(q: string): boolean {
  return !/(^|\s)has:/i.test(q);
}
