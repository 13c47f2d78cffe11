/** Why runs of a flow fail and where, and how long its nodes take. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Text } from "@/components/Value";
import { writeRunQuery } from "@/models/runQuery";
import { duration } from "@/models/time";
import { listFlowRuns, listNodeVisits } from "@/services/flows";
import { type FailureGroup, type NodeFacts, failedNode, groupsOf, nodeFacts } from "./failures";
import { t } from "./text";

const MOST_FAILED = 100;
const LATEST = 20;
const LINKS = 5;

export function Failures({ flow }: { flow: string }) {
  const failed = useQuery({ queryKey: ["flows", "failed", flow], queryFn: () => listFlowRuns(flow, ["failed"], MOST_FAILED) });
  if (failed.isPending) return <Skeleton />;
  if (failed.isError) return <Problem error={failed.error} onRetry={() => void failed.refetch()} />;
  return (
    <>
      {failed.data.length === 0 ? <Notice title={t("noFailures")} /> : null}
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
        <Link to="/runs" search={{ q: writeRunQuery({ status: ["failed"], flow }) }} className="failure-count">
          {t("runCount", { count: group.runs.length })}
        </Link>
        {node ? <span className="muted">{t("failedAt", { node })}</span> : null}
        <span className="muted small">
          {t("latest")} <Moment at={newest.endedAt ?? newest.createdAt} />
        </span>
      </p>
      <p className="failure-text">
        <Text text={group.error || t("noError")} />
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

/** Of the latest runs only: each costs a request. */
function NodeTable({ flow }: { flow: string }) {
  const runs = useQuery({ queryKey: ["flows", "runs", flow], queryFn: () => listFlowRuns(flow, [], LATEST) });
  const all = useQueries({
    queries: (runs.data ?? []).map((run) => ({ queryKey: ["flows", "visits", run.id], queryFn: () => listNodeVisits(run.id), staleTime: 60_000 })),
  });
  const facts = nodeFacts(all.flatMap((each) => each.data ?? []));
  if (facts.length === 0) return null;
  return (
    <section className="panel flow-part" aria-label={t("byNode")}>
      <h2>{t("byNode")}</h2>
      <p className="muted small">{t("ofLatest", { count: all.length })}</p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll" tabIndex={0}>
        <table className="flow-table">
          <thead>
            <tr>
              <th scope="col">{t("node")}</th>
              <th scope="col">{t("visits")}</th>
              <th scope="col">{t("failures")}</th>
              <th scope="col">{t("retries")}</th>
              <th scope="col">{t("median")}</th>
              <th scope="col">{t("slowest")}</th>
            </tr>
          </thead>
          <tbody>
            {facts.map((each) => (
              <NodeRow key={each.node} facts={each} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function NodeRow({ facts }: { facts: NodeFacts }) {
  const newest = facts.failedRuns[0];
  return (
    <tr>
      <th scope="row">{facts.node}</th>
      <td className="number">{facts.visits}</td>
      <td className="number">
        {newest ? (
          <Link to="/runs/$run" params={{ run: newest }} className="late">
            {facts.failed}
          </Link>
        ) : (
          "0"
        )}
      </td>
      <td className="number">{facts.retries}</td>
      <td className="number">{facts.p50 === null ? "–" : duration(facts.p50)}</td>
      <td className="number">{facts.p95 === null ? "–" : duration(facts.p95)}</td>
    </tr>
  );
}
