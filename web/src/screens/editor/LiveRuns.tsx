/** Runs of this flow that are under way; one of them shows its states on the nodes. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { isLost } from "@/components/isLost";
import { Moment } from "@/components/Moment";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useChangedRuns } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { RunBadge } from "@/screens/runs/RunBadge";
import { listFlowRuns } from "@/services/flows";
import { PausedRuns } from "./PausedRuns";
import { t } from "./text";

const LIVE = ["pending", "running", "waiting", "pending_input", "resumable"] as const;
const SHOWN = 20;

export function LiveRuns({ flow, shown }: { flow: string; shown: string }) {
  const mayRead = useRight("runs:read");
  if (!mayRead) return <Forbidden right="runs:read" />;
  return (
    <>
      <PausedRuns flow={flow} />
      <Runs flow={flow} shown={shown} />
    </>
  );
}

function Runs({ flow, shown }: { flow: string; shown: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const runs = useQuery({ queryKey: ["documents", "runs", flow], queryFn: () => listFlowRuns(flow, [...LIVE], SHOWN) });
  useChangedRuns(useRest(() => client.invalidateQueries({ queryKey: ["documents", "runs", flow] })));
  const show = (run: string) => void navigate({ to: ".", search: (old: object) => ({ ...old, run: run === shown ? undefined : run }), replace: true });
  if (runs.isPending) return <Skeleton rows={2} />;
  if (isLost(runs)) return <Problem error={runs.error} onRetry={() => void runs.refetch()} />;
  if (runs.data.length === 0 && shown === "") return <Notice title={t("noRuns")} hint={t("noRunsHint")} />;
  const isListed = runs.data.some((each) => each.id === shown);
  return (
    <>
      {shown && !isListed ? (
        <p className="run-row">
          {t("shownRun", { run: shown.slice(0, 8) })}
          <button type="button" className="button quiet" onClick={() => show(shown)}>
            {t("hideRun")}
          </button>
        </p>
      ) : null}
      <ul className="run-list">
        {runs.data.map((each) => (
          <li key={each.id} className={each.id === shown ? "run-row shown" : "run-row"}>
            <button type="button" className="run-choice" aria-pressed={each.id === shown} onClick={() => show(each.id)}>
              <span className="away">{t("showRun", { run: each.id.slice(0, 8) })} </span>
              <RunBadge run={each} />
              <span className="code">{each.id.slice(0, 8)}</span>
              <span className="muted small">
                <Moment at={each.createdAt} />
              </span>
            </button>
            <Link to="/runs/$run" params={{ run: each.id }} className="small">
              {t("openRun")}
            </Link>
          </li>
        ))}
      </ul>
    </>
  );
}
