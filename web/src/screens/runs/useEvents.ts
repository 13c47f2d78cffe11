/** The events of a run around those in view. They never change, so each is read once while it is kept. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef } from "react";
import { type Trail, before, rowsBefore } from "@/models/list";
import { listEvents } from "@/services/runHistory";

const MOST_PAGES = 20;
const NEAR = 50;

export function useEvents(run: string) {
  const trail = useRef<Trail>(new Map());
  const query = useInfiniteQuery({
    queryKey: ["events", run],
    queryFn: async ({ pageParam }) => {
      const page = await listEvents(run, Number(pageParam));
      if (page.events.length > 0) trail.current.set(String(page.last), { before: pageParam, rows: page.events.length });
      return page;
    },
    initialPageParam: "",
    getNextPageParam: (page) => String(page.last),
    getPreviousPageParam: (_page, _pages, cursor: string) => before(trail.current, cursor),
    maxPages: MOST_PAGES,
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    gcTime: 0,
  });
  const events = useMemo(() => query.data?.pages.flatMap((page) => page.events) ?? [], [query.data]);
  const first = String(query.data?.pageParams[0] ?? "");
  /** How many were read and are not kept. */
  const above = () => rowsBefore(trail.current, first);
  return { query, events, above, read: query.data?.pages.at(-1)?.last ?? 0 };
}

/** Reads on where the view comes near to what is not there. `last`: the number of the latest event of the run. */
export function useNear({ query, events, above, read }: ReturnType<typeof useEvents>, first: number, end: number, last: number): void {
  const { isFetching, isError, hasPreviousPage, fetchNextPage, fetchPreviousPage } = query;
  const offset = above();
  useEffect(() => {
    if (isFetching || isError) return;
    if (hasPreviousPage && first < offset + NEAR) void fetchPreviousPage();
    else if (read < last && end >= offset + events.length - NEAR) void fetchNextPage();
  }, [first, end, offset, events.length, read, last, isFetching, isError, hasPreviousPage, fetchNextPage, fetchPreviousPage]);
}
