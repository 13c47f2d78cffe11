/** Runs of a flow that have not ended, and those that failed, by status: each a link to the list. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { StatusBadge } from "@/components/StatusBadge";
import { writeRunQuery } from "@/models/runQuery";
import { type Counts, countsOf } from "@/services/flows";
import { RUN_STATUSES, runWord } from "@/words";
import { t } from "./text";

const EVERY = 5_000;
const QUIET = new Set(["completed", "cancelled"]);

export function useCounts(flow: string): Counts | undefined {
  const mayRead = useRight("runs:read");
  return useQuery({ queryKey: ["flows", "counts", flow], queryFn: () => countsOf(flow), refetchInterval: EVERY, enabled: mayRead }).data;
}

export function LiveRuns({ flow }: { flow: string }) {
  const counts = useCounts(flow);
  if (counts === undefined) return <span className="live-runs" />;
  const shown = RUN_STATUSES.filter((each) => !QUIET.has(each) && (counts[each] ?? 0) > 0);
  if (shown.length === 0) return <span className="live-runs muted small">{t("noLiveRuns")}</span>;
  return (
    <ul className="live-runs" aria-label={t("byStatus")}>
      {shown.map((status) => (
        <li key={status}>
          <Link to="/runs" search={{ q: writeRunQuery({ status: [status], flow }) }} className="live-count">
            <StatusBadge shown={runWord(status)} />
            <span>{counts[status]}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
