/** The versions of a flow, who carries them, and what the newest would break. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Icon } from "@/components/Icon";
import { isLost } from "@/components/isLost";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { shortVersion } from "@/models/names";
import { writeRunQuery } from "@/models/runQuery";
import { type Flow, type RunFit, type Version, checkFlow, countsOf, listDeployments } from "@/services/flows";
import { failureOf } from "@/services/client";
import { RUN_STATUSES, runWord } from "@/words";
import { t } from "./text";
import { versionName } from "./versions";

export function Versions({ flow }: { flow: Flow }) {
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys */}
      <div className="table-scroll panel" tabIndex={0}>
        <table className="flow-table">
          <thead>
            <tr>
              <th scope="col">{t("version")}</th>
              <th scope="col">{t("source")}</th>
              <th scope="col">{t("stored")}</th>
              <th scope="col">{t("nodes")}</th>
              <th scope="col">{t("workers")}</th>
              <th scope="col">{t("liveRuns")}</th>
            </tr>
          </thead>
          <tbody>
            {flow.versions.map((each) => (
              <Row key={each.id} flow={flow.name} version={each} />
            ))}
          </tbody>
        </table>
      </div>
      <Checked flow={flow.name} isLoaded={flow.versions.some((each) => each.isLoaded)} />
      <Deployments flow={flow} />
    </>
  );
}

function Row({ flow, version }: { flow: string; version: Version }) {
  return (
    <tr>
      <th scope="row">
        <Link to="/flows/$name" params={{ name: flow }} search={{ tab: "graph", version: version.id }} className="code" title={version.id}>
          {versionName(version)}
        </Link>{" "}
        {version.isCurrent ? (
          <span className="badge role-completed">
            <Icon name="check" />
            {t("current")}
          </span>
        ) : null}
      </th>
      <td data-label={t("source")}>{version.isDocument ? t("document") : t("code")}</td>
      <td data-label={t("stored")}>
        <Moment at={version.createdAt} />
      </td>
      <td className="number" data-label={t("nodes")}>
        <Link to="/flows/$name" params={{ name: flow }} search={{ tab: "graph", version: version.id }}>{version.nodes}</Link>
      </td>
      <td className="number" data-label={t("workers")}>
        {version.workers > 0 ? <Link to="/operations">{version.workers}</Link> : <span className={version.isCurrent ? "late" : "muted"}>{t("noWorkers")}</span>}
      </td>
      <td data-label={t("liveRuns")}>
        <LiveOfVersion flow={flow} version={version.id} />
      </td>
    </tr>
  );
}

const MOST_BROKEN = 50;
const ENDED = new Set(["completed", "failed", "cancelled"]);

function LiveOfVersion({ flow, version }: { flow: string; version: string }) {
  const mayRead = useRight("runs:read");
  const counts = useQuery({ queryKey: ["flows", "counts", flow, version], queryFn: () => countsOf(flow, version), enabled: mayRead });
  if (counts.data === undefined) return null;
  const live = RUN_STATUSES.filter((each) => !ENDED.has(each));
  const count = live.reduce((sum, each) => sum + (counts.data[each] ?? 0), 0);
  return <Link to="/runs" search={{ q: writeRunQuery({ status: live, flow, version }) }} className="number">{count}</Link>;
}

/** Whether runs on other versions could go on with the newest one. */
function Checked({ flow, isLoaded }: { flow: string; isLoaded: boolean }) {
  const check = useQuery({ queryKey: ["flows", "check", flow], queryFn: () => checkFlow(flow), enabled: isLoaded });
  const broken = check.data?.runs.filter((each) => !each.fits) ?? [];
  return (
    <section className="panel flow-part" aria-label={t("check")}>
      <h2>{t("check")}</h2>
      {check.isLoading ? <Skeleton rows={1} /> : null}
      {check.isError ? <Problem error={check.error} onRetry={() => void check.refetch()} /> : null}
      {!isLoaded ? <p className="muted">{t("checkUnknown")}</p> : null}
      {check.data ? (
        <p className={broken.length > 0 ? "check-broken" : "check-fine"}>
          <Icon name={broken.length > 0 ? "cross" : "check"} />
          <Link to="/runs" search={{ q: writeRunQuery({ status: RUN_STATUSES.filter((each) => !ENDED.has(each)), flow }) }}>
            {broken.length > 0 ? t("breaks", { count: broken.length, version: shortVersion(check.data.version) }) : t("fits", { count: check.data.fits })}
          </Link>
        </p>
      ) : null}
      {broken.length > 0 ? (
        <ul className="misfits">
          {broken.slice(0, MOST_BROKEN).map((each) => (
            <Broken key={each.run} fit={each} />
          ))}
          {broken.length > MOST_BROKEN ? <li className="muted small">{t("moreBroken", { count: broken.length - MOST_BROKEN })}</li> : null}
        </ul>
      ) : null}
    </section>
  );
}

function Broken({ fit }: { fit: RunFit }) {
  return (
    <li>
      <p className="flow-line">
        <Link to="/runs/$run" params={{ run: fit.run }} className="code">
          {fit.run.slice(0, 8)}
        </Link>
        <StatusBadge shown={runWord(fit.status)} />
        <span className="muted small code">{shortVersion(fit.version)}</span>
      </p>
      <ul>
        {fit.misfits.map((each) => (
          <li key={`${each.node} ${each.why}`}>
            <strong>{each.node}</strong> {each.why} <span className="muted">{each.fix}</span>
          </li>
        ))}
      </ul>
    </li>
  );
}

function Deployments({ flow }: { flow: Flow }) {
  const found = useQuery({ queryKey: ["flows", "deployments", flow.name], queryFn: () => listDeployments(flow.name) });
  // Not everybody may read them, and most flows have none.
  if (isLost(found) && failureOf(found.error).kind !== "forbidden") return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data || found.data.length === 0) return null;
  return (
    <section className="panel flow-part" aria-label={t("deployments")}>
      <h2>{t("deployments")}</h2>
      <dl className="facts">
        {found.data.map((each) => (
          <div key={each.name}>
            <dt>{each.name}</dt>
            <dd>
              {each.version ? <span className="code">{shortVersion(each.version)}</span> : t("newestVersion")} {each.mode ? <span className="muted">{each.mode}</span> : null}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
