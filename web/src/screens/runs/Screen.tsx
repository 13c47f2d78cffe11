/** The list of runs, with the counts of each status. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { useRight } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { SearchBox } from "@/components/SearchBox";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { useChangedRuns, useGaps } from "@/live/useLive";
import { statusesIn, toggledStatus, withoutStatus } from "@/models/runQuery";
import { duration, roughly, shortTime } from "@/models/time";
import { type Run, type RunPage, countRuns, listRuns } from "@/services/runs";
import { RUN_STATUSES, runWord } from "@/words";
import { BreakpointsBar } from "./BreakpointsBar";
import "./runs.css";
import { t } from "./text";

/** Changes come by themselves; this is for a connection that does not carry them. */
const EVERY = 15_000;
/** Many runs change at once: the list is read at most this often. */
const REST = 400;

export function Screen() {
  const mayRead = useRight("runs:read");
  return (
    <main id="main" tabIndex={-1} className="page">
      <h1>{t("title")}</h1>
      {mayRead ? <RunList /> : <Forbidden right="runs:read" />}
    </main>
  );
}

function RunList() {
  const { q = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const gaps = useGaps();
  useLiveList();
  const runs = useInfiniteQuery({
    queryKey: ["runs", "list", q, gaps],
    queryFn: ({ pageParam }) => listRuns(q, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last: RunPage) => last.next,
    refetchInterval: EVERY,
    placeholderData: (old) => old,
  });
  const rows = runs.data?.pages.flatMap((page) => page.runs) ?? [];
  const find = (text: string) => void navigate({ to: "/runs", search: text ? { q: text } : {} });
  return (
    <>
      <SearchBox key={q} id="runs-search" q={q} label={t("search")} example={t("searchExample")} onSearch={find} />
      <BreakpointsBar />
      <StatusCounts q={q} />
      {runs.isPending ? <Skeleton /> : null}
      {runs.isError ? <Problem error={runs.error} onRetry={() => void runs.refetch()} /> : null}
      {runs.isSuccess && rows.length === 0 ? (
        <Notice title={q ? t("noMatch") : t("empty")} hint={q ? "" : t("emptyHint")}>
          {q ? (
            <button type="button" className="button" onClick={() => find("")}>
              {t("clear")}
            </button>
          ) : null}
        </Notice>
      ) : null}
      {rows.length > 0 ? <RunTable rows={rows} /> : null}
      {runs.hasNextPage ? (
        <button type="button" className="button" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          {t("more")}
        </button>
      ) : null}
    </>
  );
}

/** Reads the list again after a run has changed. */
function useLiveList(): void {
  const client = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useChangedRuns(() => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      void client.invalidateQueries({ queryKey: ["runs"] });
    }, REST);
  });
  useEffect(() => () => clearTimeout(timer.current), []);
}

/** Each a link that adds or removes its status. */
function StatusCounts({ q }: { q: string }) {
  const rest = withoutStatus(q);
  const chosen = statusesIn(q);
  const counts = useQuery({ queryKey: ["runs", "count", rest], queryFn: () => countRuns(rest), refetchInterval: EVERY, placeholderData: (old) => old });
  return (
    <ul className="status-counts" aria-label={t("byStatus")}>
      {RUN_STATUSES.map((status) => {
        const isOn = chosen.includes(status);
        const count = counts.data?.[status] ?? 0;
        if (!isOn && count === 0) return null;
        const next = toggledStatus(q, status);
        return (
          <li key={status}>
            <Link to="/runs" search={next ? { q: next } : {}} className={`status-count ${isOn ? "on" : ""}`} aria-current={isOn ? "true" : undefined}>
              <StatusBadge shown={runWord(status)} />
              <span>{count}</span>
            </Link>
          </li>
        );
      })}
    </ul>
  );
}

function RunTable({ rows }: { rows: Run[] }) {
  const now = useNow();
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <div className="table-scroll panel" tabIndex={0}>
      <table className="list-table">
        <thead>
          <tr>
            <th scope="col">{t("run")}</th>
            <th scope="col">{t("flow")}</th>
            <th scope="col">{t("status")}</th>
            <th scope="col">{t("started")}</th>
            <th scope="col">{t("took")}</th>
            <th scope="col">{t("by")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((run) => (
            <tr key={run.id}>
              <th scope="row">
                <Link to="/runs/$run" params={{ run: run.id }} className="code">
                  {run.id.slice(0, 8)}
                </Link>
              </th>
              <td>{run.flow}</td>
              <td>
                <StatusBadge shown={runWord(run.status, run.wakesAt ? shortTime(new Date(run.wakesAt), new Date(now)) : "")} />
                {run.error ? <span className="row-error small">{run.error}</span> : null}
              </td>
              <td>
                <Moment at={run.createdAt} text={agoText(run, now)} />
              </td>
              <td>{tookText(run, now)}</td>
              <td>{run.startedBy}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function agoText(run: Run, now: number): string {
  return t("ago", { age: roughly(now - new Date(run.createdAt).getTime()) });
}

function tookText(run: Run, now: number): string {
  const end = run.endedAt ? new Date(run.endedAt).getTime() : now;
  return duration(Math.max(0, end - new Date(run.createdAt).getTime()));
}
