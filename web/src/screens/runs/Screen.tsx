/** The list of runs, with the counts of each status. */
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useRight } from "@/app/useSession";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { SearchBox } from "@/components/SearchBox";
import { searchProblem } from "@/components/searchProblem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { useTitle } from "@/components/useTitle";
import { useChangedRuns, useGaps } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { repaired } from "@/models/query";
import { readRunQuery } from "@/models/queryRuns";
import { isPausedIn, statusesIn, toggledPaused, toggledStatus, withoutStatus } from "@/models/runQuery";
import { chosenRows } from "@/models/selection";
import { countPaused } from "@/services/pausedCount";
import { failureOf } from "@/services/client";
import { type Run, type RunPage, countRuns, listRuns } from "@/services/runs";
import { RUN_STATUSES, type Shown, pausedWord, runWord } from "@/words";
import { BulkRuns } from "./BulkRuns";
import { RunTable } from "./RunTable";
import "./runs.css";
import { t } from "./text";

/** Changes come by themselves; this is for a connection that does not carry them. */
const EVERY = 15_000;

export function Screen() {
  const mayRead = useRight("runs:read");
  useTitle([t("title")]);
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
  const mayWrite = useRight("runs:write");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const client = useQueryClient();
  useChangedRuns(useRest(() => client.invalidateQueries({ queryKey: ["runs"] })));
  const runs = useInfiniteQuery({
    queryKey: ["runs", "list", q, gaps],
    queryFn: ({ pageParam }) => listRuns(q, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last: RunPage) => last.next,
    refetchInterval: EVERY,
    placeholderData: (old) => old,
  });
  const rows = runs.data?.pages.flatMap((page) => page.runs) ?? [];
  // After a bulk action the runs may fit the search no more: their results are still shown. Another search lets them go.
  const [seen, setSeen] = useState<{ q: string; rows: ReadonlyMap<string, Run> }>({ q, rows: new Map() });
  const picked = chosenRows(chosen, rows, seen.q === q ? seen.rows : new Map<string, Run>());
  const choose = (ids: ReadonlySet<string>) => {
    setChosen(ids);
    setSeen({ q, rows: new Map(chosenRows(ids, rows, seen.q === q ? seen.rows : new Map<string, Run>()).map((each) => [each.id, each])) });
  };
  const find = (text: string) => void navigate({ to: "/runs", search: text ? { q: text } : {} });
  useKeys([{ keys: "/", group: t("title"), label: t("search"), run: () => document.getElementById("runs-search")?.focus() }]);
  return (
    <>
      <SearchBox key={q} id="runs-search" q={q} label={t("search")} example={t("searchExample")} problemOf={(text) => searchProblem(readRunQuery(text, "", 0n).wrong)} meantBy={(text) => repaired(text, readRunQuery(text, "", 0n).wrong)} onSearch={find} />
      <StatusCounts q={q} />
      {runs.isPending ? <Skeleton /> : null}
      {runs.isError ? <Problem error={runs.error} onRetry={() => void runs.refetch()} /> : null}
      {runs.isSuccess && rows.length === 0 ? (
        <Notice title={q ? t("noMatch") : t("empty")} hint={q ? t("noMatchHint", { q }) : t("emptyHint")}>
          {q ? (
            <button type="button" className="button" onClick={() => find("")}>
              {t("clear")}
            </button>
          ) : null}
        </Notice>
      ) : null}
      {rows.length > 0 ? <RunTable rows={rows} chosen={mayWrite ? chosen : null} onChoose={choose} /> : null}
      {picked.length > 0 ? <BulkRuns runs={picked} onLeave={(left) => choose(new Set(left))} /> : null}
      {runs.hasNextPage ? (
        <button type="button" className="button" disabled={runs.isFetchingNextPage} onClick={() => void runs.fetchNextPage()}>
          {t("more")}
        </button>
      ) : null}
    </>
  );
}

/** Each a link that adds or removes its status. */
function StatusCounts({ q }: { q: string }) {
  const rest = withoutStatus(q);
  const chosen = statusesIn(q);
  const isPaused = isPausedIn(q);
  const counts = useQuery({ queryKey: ["runs", "count", rest], queryFn: () => countRuns(rest), refetchInterval: EVERY, placeholderData: (old) => old });
  const waiting = counts.data?.pending_input ?? 0;
  const paused = useQuery({ queryKey: ["runs", "count paused", rest], queryFn: () => countPaused(rest), enabled: waiting > 0, refetchInterval: EVERY, placeholderData: (old) => old });
  const stand = waiting > 0 ? (paused.data ?? 0) : 0;
  // Where nothing can be read the list below says so.
  if (counts.isError && failureOf(counts.error).kind !== "offline") return <Problem error={counts.error} onRetry={() => void counts.refetch()} />;
  return (
    <ul className="status-counts" aria-label={t("byStatus")}>
      {RUN_STATUSES.map((status) => {
        // Those at a breakpoint wait for input too; they have a count of their own.
        const count = (counts.data?.[status] ?? 0) - (status === "pending_input" ? stand : 0);
        return <StatusCount key={status} shown={runWord(status)} count={count} isOn={chosen.includes(status)} next={toggledStatus(q, status)} />;
      })}
      <StatusCount shown={pausedWord()} count={stand} isOn={isPaused} next={toggledPaused(q)} />
    </ul>
  );
}

function StatusCount({ shown, count, isOn, next }: { shown: Shown; count: number; isOn: boolean; next: string }) {
  if (!isOn && count === 0) return null;
  return (
    <li>
      <Link to="/runs" search={next ? { q: next } : {}} className={`status-count ${isOn ? "on" : ""}`} aria-current={isOn ? "true" : undefined}>
        <StatusBadge shown={shown} />
        <span>{count}</span>
      </Link>
    </li>
  );
}
