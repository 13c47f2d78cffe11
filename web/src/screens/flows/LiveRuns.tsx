/** Runs of a flow that have not ended, and those that failed, by status: each a link to the list. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { StatusBadge } from "@/components/StatusBadge";
import { writeRunQuery } from "@/models/runQuery";
import { type Counts, countsOf } from "@/services/flows";
import { countPaused } from "@/services/pausedCount";
import { RUN_STATUSES, type Shown, pausedWord, runWord } from "@/words";
import { t } from "./text";

const EVERY = 5_000;
const QUIET = new Set(["completed", "cancelled"]);

export function useCounts(flow: string): Counts | undefined {
  const mayRead = useRight("runs:read");
  return useQuery({ queryKey: ["flows", "counts", flow], queryFn: () => countsOf(flow), refetchInterval: EVERY, enabled: mayRead }).data;
}

export function LiveRuns({ flow }: { flow: string }) {
  const counts = useCounts(flow);
  const waiting = counts?.pending_input ?? 0;
  const paused = useQuery({ queryKey: ["flows", "paused", flow], queryFn: () => countPaused(writeRunQuery({ status: [], flow })), refetchInterval: EVERY, enabled: waiting > 0 });
  // Those at a breakpoint wait for input too; they have a count of their own.
  const stand = waiting > 0 ? (paused.data ?? 0) : 0;
  if (counts === undefined) return <span className="live-runs" />;
  const shown = RUN_STATUSES.filter((each) => !QUIET.has(each)).map((each) => ({ status: each, count: (counts[each] ?? 0) - (each === "pending_input" ? stand : 0) })).filter((each) => each.count > 0);
  if (shown.length === 0 && stand === 0) return <span className="live-runs muted small">{t("noLiveRuns")}</span>;
  return (
    <ul className="live-runs" aria-label={t("byStatus")}>
      {shown.map(({ status, count }) => <LiveCount key={status} q={writeRunQuery({ status: [status], flow })} shown={runWord(status)} count={count} />)}
      {stand > 0 ? <LiveCount q={writeRunQuery({ status: [], flow, isPaused: true })} shown={pausedWord()} count={stand} /> : null}
    </ul>
  );
}

function LiveCount({ q, shown, count }: { q: string; shown: Shown; count: number }) {
  return (
    <li>
      <Link to="/runs" search={{ q }} className="live-count">
        <StatusBadge shown={shown} />
        <span>{count}</span>
      </Link>
    </li>
  );
}
