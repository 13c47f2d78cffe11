/** A row for each visit, a bar for each attempt, waits hatched. A map is one row until it is opened. */
import { type UseQueryResult, useQueries } from "@tanstack/react-query";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useMemo, useRef, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useRoving } from "@/components/useRoving";
import { useNow } from "@/components/useNow";
import { toggled } from "@/models/selection";
import { type Point, allBars, axisOf, rowsOf } from "@/models/timeline";
import { type Timeline as Found, type Visit, getInside } from "@/services/runHistory";
import { HistoryNotes } from "./HistoryNotes";
import { t } from "./text";
import { TimelineRow } from "./TimelineRow";
import { TimelineScale, Workers } from "./TimelineScale";

const HEIGHT = 41;
/** So many rows are computed again each second; with more, each quarter of a minute. */
const MOST_MOVED = 2_000;
type TimelineProps = { run: string; found: Found; point: Point | null; step: number; pruned: number };

export function Timeline({ run, found, point, step, pruned }: TimelineProps) {
  const scroll = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const { inside, unread, error, retry } = useInside(run, [...open]);
  const rows = useMemo(() => rowsOf(found.visits, open, inside), [found.visits, open, inside]);
  // Without an open visit nothing moves, and nothing is computed again.
  const isOpen = useMemo(() => found.visits.some((each) => each.endedAt === null), [found.visits]);
  const clock = useNow(isOpen && found.visits.length < MOST_MOVED);
  const now = isOpen ? clock : 0;
  const axis = useMemo(() => axisOf(allBars(found.visits, now)), [found.visits, now]);
  const resumes = useMemo(() => found.marks.filter((each) => each.kind === "resumed"), [found.marks]);
  const toggle = useCallback((within: string) => setOpen((old) => toggled(old, within)), []);
  // oxlint-disable-next-line react/incompatible-library -- the compiler is not used
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => scroll.current, estimateSize: () => HEIGHT, overscan: 10 });
  const stops = useMemo(() => rows.filter(isStop), [rows]);
  // Not with each frame while it is scrolled: there may be thousands.
  const names = useMemo(() => stops.map(rowKey), [stops]);
  const { reachable, group } = useRoving(names, (place) => list.scrollToIndex(rows.indexOf(stops[place]!)));
  useKeys([
    { keys: "ArrowUp ArrowDown", group: t("timeline"), label: t("keysRows") },
    { keys: "Home End", group: t("timeline"), label: t("keysEnds") },
    { keys: "Enter", group: t("timeline"), label: t("keysOpen") },
  ]);
  if (found.visits.length === 0) return <Notice title={t("noVisits")} hint={t("noVisitsHint")} />;
  return (
    <section className="timeline panel" aria-label={t("timeline")} data-part="work">
      <HistoryNotes found={found} pruned={pruned} />
      <Workers first={found.firstWorker} resumes={resumes} />
      {unread ? <Skeleton rows={2} /> : null}
      {error === null ? null : <Problem error={error} onRetry={retry} />}
      <TimelineScale axis={axis} resumes={resumes} />
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex, jsx-a11y/no-static-element-interactions -- what scrolls must be reached by keys; those of its rows */}
      <div ref={scroll} className="timeline-rows" tabIndex={stops.length > 0 ? undefined : 0} {...group}>
        <ol style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            return (
              <TimelineRow key={rowKey(row)} stop={rowKey(row)} isReachable={rowKey(row) === reachable} row={row} place={item.index} top={item.start} measure={list.measureElement} axis={axis} resumes={resumes} now={now} point={point}
                isShown={row.visit.seq >= 0 && row.visit.seq === step} onToggle={toggle} />
            );
          })}
        </ol>
      </div>
    </section>
  );
}

/** What tells a row from the others. */
function rowKey({ visit }: { visit: Visit }): string {
  return `${visit.run} ${visit.record} ${visit.node} ${visit.visit}`;
}

/** Whether it has a link to its step. */
function isStop({ visit }: { visit: Visit }): boolean {
  return visit.seq >= 0 || (visit.ofSource && visit.record >= 0);
}

type Inside = { inside: ReadonlyMap<string, Visit[]>; unread: boolean; error: unknown; retry: () => void };

/** What is inside of the visits that are open, as far as it is read. */
export function useInside(run: string, open: readonly string[]): Inside {
  const names = open.join("\n");
  // Stable, so that rows are made again only if something was read.
  const combine = useCallback(
    (found: UseQueryResult<Visit[]>[]) => ({
      inside: new Map(names.split("\n").flatMap((within, place) => (found[place]?.data ? [[within, found[place].data] as const] : []))),
      unread: found.some((each) => each.isPending),
      error: found.find((each) => each.isError)?.error ?? null,
      retry: () => found.forEach((each) => void (each.isError ? each.refetch() : undefined)),
    }),
    [names],
  );
  return useQueries({
    queries: open.map((within) => ({ queryKey: ["run", run, "inside", within], queryFn: () => getInside(run, within) })),
    combine,
  });
}
