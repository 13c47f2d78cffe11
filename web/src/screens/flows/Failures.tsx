/** Why runs of a flow fail and where, where they wait, and how long its nodes take. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { isLost } from "@/components/isLost";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Text } from "@/components/Value";
import { writeRunQuery } from "@/models/runQuery";
import { duration } from "@/models/time";
import { type NodeFacts, getNodeFacts, listFlowRuns, listNodeVisits } from "@/services/flows";
import { type FailureGroup, failedNode, groupsOf } from "./failures";
import { t } from "./text";

const MOST_FAILED = 100;
const LINKS = 5;

/** Bytes of an error that are shown whole. */
const LONG_ERROR = 400;

export function Failures({ flow }: { flow: string }) {
  const failed = useQuery({ queryKey: ["flows", "failed", flow], queryFn: () => listFlowRuns(flow, ["failed"], MOST_FAILED) });
  if (failed.isPending) return <Skeleton />;
  if (isLost(failed)) return <Problem error={failed.error} onRetry={() => void failed.refetch()} />;
  return (
    <>
      {failed.data.length === 0 ? <Notice title={t("noFailures")} hint={t("noFailuresHint")} /> : null}
      {failed.data.length > 0 ? (
        <section className="panel flow-part" aria-label={t("byError")}>
          <h2>{t("byError")}</h2>
          <ul className="failure-groups">
            {groupsOf(failed.data).map((each) => (
              <Group key={each.error} flow={flow} group={each} />
            ))}
          </ul>
        </section>
      ) : null}
      <NodeTable flow={flow} />
    </>
  );
}

function Group({ flow, group }: { flow: string; group: FailureGroup }) {
  const newest = group.runs[0]!;
  const visits = useQuery({ queryKey: ["flows", "visits", newest.id], queryFn: () => listNodeVisits(newest.id) });
  const node = visits.data ? failedNode(visits.data) : "";
  return (
    <li>
      <p className="failure-line">
        <Link to="/runs" search={{ q: writeRunQuery({ status: ["failed"], flow, error: partOf(group.error) }) }} className="failure-count">
          {t("runCount", { count: group.runs.length })}
        </Link>
        {node ? <span className="muted">{t("failedAt", { node })}</span> : null}
        <span className="muted small">
          {t("latest")} <Moment at={newest.endedAt ?? newest.createdAt} />
        </span>
      </p>
      <p className="failure-text">
        <Text text={group.error || t("noError")} most={LONG_ERROR} />
      </p>
      <p className="small failure-runs">
        {group.runs.slice(0, LINKS).map((each) => (
          <Link key={each.id} to="/runs/$run" params={{ run: each.id }} className="code">
            {each.id.slice(0, 8)}
          </Link>
        ))}
      </p>
    </li>
  );
}

function NodeTable({ flow }: { flow: string }) {
  const found = useQuery({ queryKey: ["flows", "stats", flow], queryFn: () => getNodeFacts(flow) });
  if (found.isPending) return <Skeleton rows={3} />;
  if (isLost(found)) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data || found.data.nodes.length === 0) return null;
  return (
    <section className="panel flow-part" aria-label={t("byNode")}>
      <h2>{t("byNode")}</h2>
      <p className="small">
        <Link to="/runs" search={{ q: writeRunQuery({ status: [], flow }) }}>{t("ofLatest", { count: found.data.runs })}</Link>
      </p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll" tabIndex={0}>
        <table className="flow-table">
          <thead>
            <tr>
              <th scope="col">{t("node")}</th>
              <th scope="col">{t("visits")}</th>
              <th scope="col">{t("failures")}</th>
              <th scope="col">{t("retries")}</th>
              <th scope="col">{t("waitsNow")}</th>
              <th scope="col">{t("waited")}</th>
              <th scope="col">{t("median")}</th>
              <th scope="col">{t("slowest")}</th>
            </tr>
          </thead>
          <tbody>
            {found.data.nodes.map((each) => (
              <NodeRow key={each.node} flow={flow} facts={each} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function NodeRow({ flow, facts }: { flow: string; facts: NodeFacts }) {
  return (
    <tr>
      <th scope="row">{facts.node}</th>
      <td className="number" data-label={t("visits")}>
        <Link to="/runs" search={{ q: writeRunQuery({ status: [], flow }) }}>{facts.visits}</Link>
      </td>
      <td className="number" data-label={t("failures")}>
        <RunNumber run={facts.failedRuns[0]} text={String(facts.failed)} isLate={facts.failed > 0} />
      </td>
      <td className="number" data-label={t("retries")}>
        <RunNumber run={facts.retriedRuns[0]} text={String(facts.retries)} />
      </td>
      <td className="number" data-label={t("waitsNow")}>
        <RunNumber run={facts.waitingRuns[0]} text={String(facts.waiting)} />
      </td>
      <td className="number" data-label={t("waited")}>
        <RunNumber run={facts.waitedRun} text={facts.waited === null ? "–" : duration(facts.waited)} />
      </td>
      <td className="number" data-label={t("median")}>
        <RunNumber run={facts.p50Run} text={facts.p50 === null ? "–" : duration(facts.p50)} />
      </td>
      <td className="number" data-label={t("slowest")}>
        <RunNumber run={facts.p95Run} text={facts.p95 === null ? "–" : duration(facts.p95)} />
      </td>
    </tr>
  );
}

/** A number, with a link to a run behind it where there is one. */
function RunNumber({ run, text, isLate = false }: { run: string | undefined; text: string; isLate?: boolean }) {
  if (!run) return text;
  return (
    <Link to="/runs/$run" params={{ run }} search={{ tab: "timeline" }} className={isLate ? "late" : ""}>
      {text}
    </Link>
  );
}

const MOST_LETTERS = 120;

/** What a search for the error finds: its first line, shortened. */
function partOf(error: string): string {
  return (error.split("\n")[0] ?? "").slice(0, MOST_LETTERS);
}
