/** The rows: only those in view are in the page. */
import { useQuery } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useEffectEvent, useRef } from "react";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { type Hold, type View, isOpenView } from "@/services/holds";
import { Row } from "./Row";
import { t } from "./text";
import { countQuery, isCountable, type useHolds } from "./useHolds";
import { focusTitle } from "./useInboxKeys";
import { entryOf } from "./views";

const HEIGHT = 76;
const NEAR = 20;

type RowsProps = {
  query: ReturnType<typeof useHolds>["query"];
  rows: Hold[];
  above: () => number;
  view: View;
  q: string;
  current: string;
  /** The row that is focused, anew with each round. */
  focus: { row: string; round: number };
  gone: ReadonlySet<string>;
  chosen: ReadonlySet<string>;
  onChoose: (id: string, isRange: boolean) => void;
  onOpen: (id: string) => void;
  onMove: (by: number) => void;
  onClear: () => void;
  onRefresh: () => Promise<void>;
};

export function Rows(props: RowsProps) {
  const { query, rows, view, q, onClear, onRefresh } = props;
  if (query.isPending) return <Skeleton />;
  if (query.isError && rows.length === 0) return <Problem error={query.error} onRetry={() => void onRefresh()} />;
  if (rows.length > 0) return <List {...props} />;
  if (!q) return <Notice title={t(entryOf(view).empty)} hint={t(entryOf(view).emptyHint)} />;
  return (
    <Notice title={t("noMatch")} hint={t("noMatchHint", { q })}>
      <button type="button" className="button" onClick={onClear}>{t("clearFilters")}</button>
    </Notice>
  );
}

function List({ query, rows, above, view, q, current, focus, gone, chosen, onChoose, onOpen, onMove }: RowsProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const offset = above();
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({ count: offset + rows.length, getScrollElement: () => scroll.current, estimateSize: () => HEIGHT, overscan: 8 });
  const items = list.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage } = query;
  useEffect(() => {
    if (isFetching) return;
    if (hasPreviousPage && first < offset + NEAR) void fetchPreviousPage();
    else if (hasNextPage && last >= offset + rows.length - NEAR) void fetchNextPage();
  }, [first, last, offset, rows.length, hasNextPage, hasPreviousPage, isFetching, fetchNextPage, fetchPreviousPage]);
  const place = rows.findIndex((row) => row.id === current);
  useEffect(() => {
    if (place >= 0) list.scrollToIndex(offset + place, { align: "auto" });
    // Only when another row is opened: rows that are read meanwhile do not move what is in view.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [current, place >= 0]);
  const focusRow = useEffectEvent((attempts: number) => {
    const row = scroll.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(focus.row)}"]`);
    if (row) row.focus({ preventScroll: true });
    else if (attempts > 0) requestAnimationFrame(() => focusRow(attempts - 1));
  });
  useEffect(() => {
    if (focus.round > 0) requestAnimationFrame(() => focusRow(10));
  }, [focus.round]);
  const isStruck = (row: Hold) => gone.has(row.id) || (isOpenView(view) && row.status !== "pending");
  const openRow = useCallback((id: string) => (id === current ? focusTitle() : onOpen(id)), [current, onOpen]);
  const reachable = place >= 0 ? current : (rows[0]?.id ?? "");
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- the keys of its rows */}
      <div
        ref={scroll}
        className="rows"
        onKeyDown={(event) => {
          const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (by === 0) return;
          event.preventDefault();
          onMove(by);
        }}
      >
        <ul aria-label={t("list")} style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index - offset];
            if (row === undefined) return <li key={item.index} aria-hidden="true" className="row-away" style={{ transform: `translateY(${item.start}px)` }} />;
            return (
              <li key={row.id} style={{ transform: `translateY(${item.start}px)` }} aria-setsize={hasNextPage ? -1 : offset + rows.length} aria-posinset={item.index + 1}>
                <Row
                  row={row}
                  isCurrent={row.id === current}
                  isReachable={row.id === reachable}
                  isChosen={chosen.has(row.id)}
                  isGone={isStruck(row)}
                  onChoose={onChoose}
                  onOpen={openRow}
                />
              </li>
            );
          })}
        </ul>
      </div>
      <Loaded view={view} q={q} count={rows.length} struck={rows.filter(isStruck).length} isAll={!hasNextPage && !hasPreviousPage} />
    </>
  );
}

/** `struck`: rows that are shown, and not in the list any more. */
function Loaded({ view, q, count, struck, isAll }: { view: View; q: string; count: number; struck: number; isAll: boolean }) {
  const { data } = useQuery({ ...countQuery(view, q), enabled: !isAll && isCountable(q) });
  const text = isAll || data === undefined ? t("loaded", { count: count - struck }) : t("loadedOf", { count, total: Math.max(data, count) });
  return <p className="rows-foot muted small">{text}</p>;
}
