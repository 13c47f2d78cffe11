import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { type Worker, listWorkers } from "@/services/operations";
import { Leases } from "./Leases";
import { Answered, Bar, type Column, EVERY, None, Table } from "./Panel";
import { shareOf, workerWord } from "./panels";
import { t } from "./text";

const COLUMNS: Column<Worker>[] = [
  { label: t("worker"), cell: (row) => <span className="code">{row.name}</span> },
  { label: t("state"), cell: (row) => <StatusBadge shown={workerWord(row)} /> },
  {
    label: t("busy"),
    // What a worker did last that is gone says nothing.
    cell: (row) => !row.alive ? <None /> : <Bar value={t("busyOf", { busy: row.busy, all: row.concurrency })} share={shareOf(row.busy, row.concurrency)} />,
  },
  { label: t("lanes"), cell: (row) => (row.lanes.length > 0 ? row.lanes.join(", ") : t("everyLane")) },
  { label: t("ended"), cell: (row) => t("perSecond", { rate: row.endedPerSecond }), isNumber: true },
  { label: t("seen"), cell: (row) => (row.seenAt ? <Moment at={row.seenAt} /> : <None />) },
  { label: t("release"), cell: (row) => row.release },
];

export function Workers() {
  const workers = useQuery({ queryKey: ["operations", "workers"], queryFn: listWorkers, refetchInterval: EVERY });
  return (
    <>
      <Answered query={workers}>
        {(rows) => (
          <>
          <Blocked workers={rows} />
          <Unstored workers={rows} />
          <Table
            label={t("workers")}
            rows={rows}
            columns={COLUMNS}
            keyOf={(row) => row.name}
            empty={t("noWorkers")}
            hint={t("noWorkersHint")}
            More={More}
          />
          </>
        )}
      </Answered>
      <h2>{t("leases")}</h2>
      <p className="muted small">{t("leasesHint")}</p>
      <Leases />
    </>
  );
}

/** Entities that stay locked: the next run of each waits, and only a person can end the code. */
function Blocked({ workers }: { workers: readonly Worker[] }) {
  const found = workers.filter((each) => each.alive).flatMap((worker) => worker.blocked.map((each) => ({ worker, ...each })));
  if (found.length === 0) return null;
  return (
    <div className="unused" role="note">
      <p><strong>{t("blocked", { count: found.length })}</strong> {t("blockedHint")}</p>
      <ul className="plain-list">
        {found.map(({ worker, entity, run, flow, nodes, since }) => (
          <li key={`${worker.name} ${run}`}>
            {t("blockedBy", { entity, flow, nodes, worker: worker.name, host: worker.host })} <Link to="/runs/$run" params={{ run }} className="code">{run.slice(0, 8)}</Link>, <Moment at={since} seconds />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** They are shown as running: nothing of them has failed. */
function Unstored({ workers }: { workers: readonly Worker[] }) {
  const found = workers.filter((each) => each.alive).flatMap((worker) => worker.unstored.map(([run, why]) => ({ worker: worker.name, run, why })));
  if (found.length === 0) return null;
  return (
    <div className="unused" role="note">
      <p><strong>{t("unstored", { count: found.length })}</strong> {t("unstoredHint")}</p>
      <ul className="plain-list">
        {found.map(({ worker, run, why }) => (
          <li key={`${worker} ${run}`}>
            <Link to="/runs/$run" params={{ run }} className="code">{run.slice(0, 8)}</Link>, <span className="code">{worker}</span>{": "}{why}
          </li>
        ))}
      </ul>
    </div>
  );
}

function More({ row: worker }: { row: Worker }) {
  return (
    <dl className="more-facts">
      <div>
        <dt>{t("host")}</dt>
        <dd className="code">{worker.host}</dd>
      </div>
      <div>
        <dt>{t("skew")}</dt>
        <dd>{t("seconds", { count: worker.skewSeconds })}</dd>
      </div>
      <div>
        <dt>{t("serves")}</dt>
        <dd>
          {worker.versions.length === 0 ? <None /> : null}
          <ul className="plain-list">
            {worker.versions.map(([flow, version]) => (
              <li key={version}>
                <Link to="/flows/$name" params={{ name: flow }}>{flow}</Link> <span className="muted code">{version}</span>
              </li>
            ))}
          </ul>
        </dd>
      </div>
      <div className="wide">
        <dt>{t("leases")}</dt>
        <dd><Leases worker={worker.name} /></dd>
      </div>
    </dl>
  );
}
