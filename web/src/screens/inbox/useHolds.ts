/** The list of a view: keyset pages, and what changes meanwhile without moving a row. */
import { type InfiniteData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useGaps, useHoldChanges } from "@/live/useLive";
import { type Hold, type HoldPage, type View, countOpen, getHold, listHolds } from "@/services/holds";

export const MOST_ROWS = 2000;
/** Holds that the list does not have yet. */
type News = { list: string; ids: ReadonlySet<string> };
const NONE: ReadonlySet<string> = new Set();

export function useHolds(view: View, q: string) {
  const client = useQueryClient();
  const key = useMemo(() => ["holds", "list", view, q], [view, q]);
  const list = key.join(" ");
  const [news, setNews] = useState<News>({ list, ids: new Set() });
  const fresh = news.list === list ? news.ids : NONE;
  const gaps = useGaps();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => listHolds(view, q, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last: HoldPage) => last.next,
    // Rows do not move under the reader: the list is read again when they ask for it, or come back to it.
    refetchOnWindowFocus: false,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
  });
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.holds) ?? [], [query.data]);

  useHoldChanges((change) => {
    void client.invalidateQueries({ queryKey: ["holds", "count"] });
    const known = rows.find((row) => row.id === change.hold);
    if (known === undefined) {
      if (change.status === "pending") setNews({ list, ids: new Set(fresh).add(change.hold) });
      return;
    }
    if (known.version < change.version) void renew(change.hold);
  });

  async function renew(id: string): Promise<void> {
    const hold = await client.fetchQuery({ queryKey: ["hold", id], queryFn: () => getHold(id), staleTime: 0 }).catch(() => null);
    if (hold) put(hold);
  }

  /** After they were changed here, whether or not the connection is live. */
  async function renewAll(ids: readonly string[]): Promise<void> {
    for (const id of ids) await renew(id);
  }

  /** A row in place; an older version never replaces a newer one. */
  function put(hold: Hold): void {
    client.setQueryData<InfiniteData<HoldPage>>(key, (data) =>
      data && {
        ...data,
        pages: data.pages.map((page) => ({
          ...page,
          holds: page.holds.map((row) => (row.id === hold.id && hold.version >= row.version ? hold : row)),
        })),
      },
    );
  }

  async function refresh(): Promise<void> {
    setNews({ list, ids: NONE });
    await client.resetQueries({ queryKey: key });
    await client.invalidateQueries({ queryKey: ["holds", "count"] });
  }

  useEffect(() => {
    // Something may have been missed while there was no connection: the rows are read again, in place.
    if (gaps > 0) void client.invalidateQueries({ queryKey: ["holds"] });
  }, [gaps, client]);

  return { query, rows, put, renewAll, refresh, fresh: [...fresh].filter((id) => !rows.some((row) => row.id === id)).length };
}

export function countQuery(view: View) {
  return { queryKey: ["holds", "count", view], queryFn: () => countOpen(view), staleTime: 5_000 };
}
