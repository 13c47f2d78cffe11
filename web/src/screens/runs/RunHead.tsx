/** Which run this is, how it is, and what can be done with it. */
import { Link } from "@tanstack/react-router";
import { Folded } from "@/components/Folded";
import { Moment } from "@/components/Moment";
import { shortVersion } from "@/models/names";
import { writeRunQuery } from "@/models/runQuery";
import type { Run } from "@/services/runs";
import { Lineage } from "./Lineage";
import { MachineWaits } from "./MachineWaits";
import { RunActions } from "./RunActions";
import { RunArtifacts } from "./RunArtifacts";
import { RunBadge } from "./RunBadge";
import { RunSaid } from "./RunSaid";
import { t } from "./text";

/** Bytes of an error: what is longer pushes the run itself off the page. */
const LONG_ERROR = 400;

/** `at`: the record that the page shows. */
export function RunHead({ run, at, spent }: { run: Run; at: number | undefined; spent: { tokens: number; cost: number } }) {
  return (
    <header className="run-head">
      <p className="muted small">
        <Link to="/runs">{t("title")}</Link> {"›"} <Link to="/runs" search={{ q: writeRunQuery({ status: [], flow: run.flow }) }}>{run.flow}</Link>
      </p>
      <div className="run-line">
        <h1>
          {run.flow} <span className="code muted">{run.id.slice(0, 8)}</span>
        </h1>
        <RunBadge run={run} />
        <RunSaid run={run} />
        <RunActions run={run} at={at} />
      </div>
      <p className="muted small">
        {t("version", { version: shortVersion(run.version) })} {"·"} {t("startedAt")} <Moment at={run.createdAt} seconds />
        {run.startedBy ? ` · ${t("startedBy", { person: run.startedBy })}` : ""}
        {spent.tokens > 0 ? ` · ${t("spentTokens", { count: spent.tokens })}` : ""}
        {spent.cost > 0 ? ` · ${t("spentCost", { cost: spent.cost })}` : ""}
      </p>
      <RunArtifacts run={run} />
      <Lineage run={run} />
      {at === undefined ? null : <p className="small past-note">{t("past", { number: at })}</p>}
      {run.error && at === undefined ? <p className={run.status === "cancelled" ? "run-ended" : "run-error"}><Folded text={run.error} most={LONG_ERROR}>{(shown) => shown}</Folded></p> : null}
      {run.unstored && at === undefined ? <p className="run-held"><strong>{t("unstored")}</strong> {run.unstored}</p> : null}
      {run.missing.length > 0 && at === undefined ? <p className="run-held"><strong>{t("missing")}</strong> {run.missing.join(", ")}</p> : null}
      {run.status === "pending_input" && at === undefined ? <MachineWaits waits={run.machineWaits} /> : null}
      {run.status === "pending_input" && at === undefined && run.asks ? (
        <p>
          <Link to="/inbox/$view" params={{ view: "all" }} search={{ q: `run:${run.id}` }}>{t("openQuestions")}</Link>
        </p>
      ) : null}
    </header>
  );
}
