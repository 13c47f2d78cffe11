/** The latest runs of a flow. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useNow } from "@/components/useNow";
import { shortVersion } from "@/models/names";
import { writeRunQuery } from "@/models/runQuery";
import { duration } from "@/models/time";
import { type Flow, type FlowRun, listFlowRuns } from "@/services/flows";
import { RunBadge } from "@/screens/runs/RunBadge";
import { t } from "./text";

const EVERY = 3_000;
/** Of an error: three lines of it are shown. */
const MOST_LETTERS = 500;
const LATEST = 20;

export function LatestRuns({ flow }: { flow: Flow }) {
  const runs = useQuery({ queryKey: ["flows", "runs", flow.name], queryFn: () => listFlowRuns(flow.name, [], LATEST), refetchInterval: EVERY });
  if (runs.isPending) return <Skeleton />;
  if (runs.isError) return <Problem error={runs.error} onRetry={() => void runs.refetch()} />;
  if (runs.data.length === 0) return <Notice title={t("noRuns")} hint={t("noRunsHint")} />;
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll panel" tabIndex={0}>
        <table className="flow-table">
          <thead>
            <tr>
              <th scope="col">{t("run")}</th>
              <th scope="col">{t("status")}</th>
              <th scope="col">{t("started")}</th>
              <th scope="col">{t("took")}</th>
              <th scope="col">{t("by")}</th>
              <th scope="col">{t("version")}</th>
              <th scope="col">
                <span className="away">{t("actions")}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {runs.data.map((each) => (
              <Row key={each.id} flow={flow.name} run={each} />
            ))}
          </tbody>
        </table>
      </div>
      <p>
        <Link to="/runs" search={{ q: writeRunQuery({ status: [], flow: flow.name }) }}>
          {t("allRuns")}
        </Link>
      </p>
    </>
  );
}

function Row({ flow, run }: { flow: string; run: FlowRun }) {
  const now = useNow(run.endedAt === null);
  const mayStart = useRight("runs:write");
  const end = run.endedAt ? new Date(run.endedAt).getTime() : now;
  return (
    <tr>
      <th scope="row">
        <Link to="/runs/$run" params={{ run: run.id }} className="code">
          {run.id.slice(0, 8)}
        </Link>
      </th>
      <td>
        <RunBadge run={run} />
        {run.error ? <span className="flow-error small">{run.error.slice(0, MOST_LETTERS)}</span> : null}
      </td>
      <td data-label={t("started")}>
        <Moment at={run.createdAt} />
      </td>
      <td data-label={t("took")}>{duration(Math.max(0, end - new Date(run.createdAt).getTime()))}</td>
      <td data-label={t("by")}>{run.startedBy}</td>
      <td className="code muted" data-label={t("version")}>{shortVersion(run.version)}</td>
      <td>
        {mayStart ? (
          <Link to="/flows/$name/start" params={{ name: flow }} search={{ from: run.id }} aria-label={t("startAgainNamed", { run: run.id.slice(0, 8) })}>
            {t("startAgain")}
          </Link>
        ) : null}
      </td>
    </tr>
  );
}
