/** The rows: only those in view are in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef } from "react";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useNow } from "@/components/useNow";
import { roughly } from "@/models/time";
import { type Hold, type View, isOpenView } from "@/services/holds";
import { holdWord, priorityWord } from "@/words";
import { t } from "./text";
import { MOST_ROWS, type useHolds } from "./useHolds";

const HEIGHT = 72;

type RowsProps = {
  query: ReturnType<typeof useHolds>["query"];
  rows: Hold[];
  view: View;
  q: string;
  current: string;
  chosen: ReadonlySet<string>;
  onChoose: (id: string) => void;
  onOpen: (id: string) => void;
  onRefresh: () => Promise<void>;
};

export function Rows({ query, rows, view, q, current, chosen, onChoose, onOpen, onRefresh }: RowsProps) {
  const scroll = useRef<HTMLDivElement>(null);
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroll.current,
    estimateSize: () => HEIGHT,
    overscan: 8,
  });
  const items = list.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  useEffect(() => {
    if (last >= rows.length - 20 && hasNextPage && !isFetchingNextPage && rows.length < MOST_ROWS) void fetchNextPage();
  }, [last, rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  const place = rows.findIndex((row) => row.id === current);
  useEffect(() => {
    if (place >= 0) list.scrollToIndex(place, { align: "auto" });
  }, [place, list]);

  if (query.isPending) return <Skeleton />;
  if (query.isError && rows.length === 0) return <Problem error={query.error} onRetry={() => void onRefresh()} />;
  if (rows.length === 0) {
    return q ? <Notice title={t("noMatch")} hint={t("noMatchHint", { q })} /> : <Notice title={t("empty")} hint={t("emptyHint")} />;
  }
  return (
    <>
      <div ref={scroll} className="rows">
        <ul aria-label={t("list")} style={{ height: list.getTotalSize() }}>
          {items.map((item) => {
            const row = rows[item.index]!;
            return (
              <li
                key={row.id}
                style={{ transform: `translateY(${item.start}px)` }}
                aria-setsize={rows.length}
                aria-posinset={item.index + 1}
              >
                <label className="row-choice">
                  <input type="checkbox" checked={chosen.has(row.id)} disabled={row.status !== "pending" && !chosen.has(row.id)} onChange={() => onChoose(row.id)} />
                  <span className="away">{t("choose", { title: row.title })}</span>
                </label>
                <Row row={row} isCurrent={row.id === current} dimmed={isOpenView(view) && row.status !== "pending"} onOpen={onOpen} />
              </li>
            );
          })}
        </ul>
      </div>
      <p className="rows-foot muted small">{t("loaded", { count: rows.length, more: hasNextPage ? "yes" : "no" })}</p>
    </>
  );
}

type RowProps = { row: Hold; isCurrent: boolean; dimmed: boolean; onOpen: (id: string) => void };

function Row({ row, isCurrent, dimmed, onOpen }: RowProps) {
  const now = useNow();
  const priority = priorityWord(row.priority);
  const due = row.expiresAt ? new Date(row.expiresAt).getTime() - now : null;
  return (
    <button
      type="button"
      className={`row ${isCurrent ? "current" : ""} ${dimmed ? "dimmed" : ""}`}
      aria-current={isCurrent ? "true" : undefined}
      onClick={() => onOpen(row.id)}
    >
      <span className={`priority rank-${priority.rank}`} aria-hidden="true" />
      <span className="row-title">{row.title}</span>
      <span className="row-time">{row.status === "pending" ? dueText(due) : outcomeText(row)}</span>
      <span className="row-facts muted small">
        {row.placedBy ? <strong>{t("placedBy", { person: row.placedBy })}</strong> : null}
        {priority.rank >= 2 ? <strong className={`rank-${priority.rank}`}>{priority.word}</strong> : <span className="away">{priority.word}</span>}
        <span>{row.flow}</span>
        <span>{row.assignee || t("nobody")}</span>
        <span>{t("age", { age: roughly(now - new Date(row.createdAt).getTime()) })}</span>
      </span>
    </button>
  );
}

function outcomeText(row: Hold): string {
  return row.status === "resolved" && row.outcome ? row.outcome.label : holdWord(row.status).word;
}

function dueText(ms: number | null): string {
  if (ms === null) return "";
  return ms >= 0 ? t("due", { time: roughly(ms) }) : t("overdue", { time: roughly(ms) });
}
