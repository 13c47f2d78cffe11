/** The events of a run, as they are stored; only those in view are in the page. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { listEvents } from "@/services/runs";
import { t } from "./text";

const HEIGHT = 36;

/** `until`: the time of the record that is shown; what came later is faint. */
export function Events({ run, until }: { run: string; until: string | undefined }) {
  const scroll = useRef<HTMLDivElement>(null);
  const query = useInfiniteQuery({
    queryKey: ["run", run, "events"],
    queryFn: ({ pageParam }) => listEvents(run, pageParam),
    initialPageParam: 0,
    getNextPageParam: (last) => last.next,
  });
  const rows = query.data?.pages.flatMap((page) => page.events) ?? [];
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => HEIGHT, overscan: 12 });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= rows.length - 50 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  if (query.isPending) return <Skeleton />;
  if (query.isError) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <div ref={scroll} className="events panel" tabIndex={0}>
      <ol aria-label={t("events")} style={{ height: list.getTotalSize() }}>
        {items.map((item) => {
          const event = rows[item.index]!;
          return (
            <li key={event.number} className={until !== undefined && event.at > until ? "later" : ""} style={{ transform: `translateY(${item.start}px)` }}>
              <span className="muted number">{event.number}</span>
              <Moment at={event.at} />
              <strong>{event.type}</strong>
              <span>{event.scope ? `${event.scope}/${event.node}` : event.node}</span>
              <span className="muted code">{JSON.stringify(event.data).slice(0, 300)}</span>
            </li>
          );
        })}
      </ol>
    </div>
  );
}
