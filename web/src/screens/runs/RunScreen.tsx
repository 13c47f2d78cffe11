/** One run: its graph, timeline, events and state, all at the record that the slider names. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Moment } from "@/components/Moment";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { useGaps, useRunChanges } from "@/live/useLive";
import { shortTime } from "@/models/time";
import { stepShown } from "@/models/timeline";
import { type Run, type Timeline as Found, getRun, getTimeline, listCheckpoints } from "@/services/runs";
import { runWord } from "@/words";
import { BreakpointsBar } from "./BreakpointsBar";
import { Events } from "./Events";
import { Graph } from "./Graph";
import { Lineage } from "./Lineage";
import { RecordSlider } from "./RecordSlider";
import { RUN_TABS } from "./routes";
import { RunActions } from "./RunActions";
import "./runs.css";
import { StateAtCheckpoint } from "./StateAtCheckpoint";
import { StepPanel } from "./StepPanel";
import { t } from "./text";
import { Timeline } from "./Timeline";
import { useRecord } from "./useRecord";

export function RunScreen() {
  const { run: id = "" } = useParams({ strict: false });
  const mayRead = useRight("runs:read");
  return (
    <main id="main" tabIndex={-1} className="page">
      {mayRead ? <RunPage key={id} id={id} /> : <Forbidden right="runs:read" />}
    </main>
  );
}

function RunPage({ id }: { id: string }) {
  const client = useQueryClient();
  const gaps = useGaps();
  const run = useQuery({ queryKey: ["run", id, "row", gaps], queryFn: () => getRun(id), placeholderData: (before) => before });
  // From the last known event on: what came before is read by each part.
  useRunChanges(run.data ? id : null, run.data?.eventSeq ?? 0, () => void client.invalidateQueries({ queryKey: ["run", id] }));
  if (run.isPending) return <Skeleton />;
  if (run.isError) return <Problem error={run.error} onRetry={() => void run.refetch()} />;
  return <RunParts run={run.data} />;
}

const NOTHING: Found = { visits: [], leftOut: 0, damage: "" };

function RunParts({ run }: { run: Run }) {
  const search = useSearch({ strict: false });
  const checkpoints = useQuery({ queryKey: ["run", run.id, "checkpoints"], queryFn: () => listCheckpoints(run.id) });
  const timeline = useQuery({ queryKey: ["run", run.id, "timeline"], queryFn: () => getTimeline(run.id) });
  const all = checkpoints.data ?? [];
  const record = useRecord(run.id, all);
  const tab = RUN_TABS.find((each) => each === search.tab) ?? "timeline";
  const found = timeline.data ?? NOTHING;
  const step = stepShown(found.visits, search.step, record.point?.seq);
  return (
    <>
      {run.status === "pending_input" ? <BreakpointsBar /> : null}
      <Head run={run} at={record.point?.seq} />
      <nav className="tabs" aria-label={t("parts")}>
        {RUN_TABS.map((name) => (
          <Link key={name} to="/runs/$run" params={{ run: run.id }} search={(old: object) => ({ ...old, tab: name })} aria-current={tab === name ? "page" : undefined} resetScroll={false}>
            {t(name)}
          </Link>
        ))}
      </nav>
      {checkpoints.isError ? <Problem error={checkpoints.error} onRetry={() => void checkpoints.refetch()} /> : null}
      <RecordSlider all={all} record={record} />
      <div className={`run-body ${step ? "with-step" : ""}`}>
        <Boundary resetKey={tab}>
          {timeline.isPending ? <Skeleton /> : null}
          {timeline.isError ? <Problem error={timeline.error} onRetry={() => void timeline.refetch()} /> : null}
          {tab === "graph" && timeline.isSuccess ? <Graph run={run.id} visits={found.visits} point={record.point} step={step?.node ?? ""} /> : null}
          {tab === "timeline" && timeline.isSuccess ? <Timeline found={found} point={record.point} step={step?.seq ?? -1} /> : null}
          {tab === "events" ? <Events run={run.id} until={record.point?.at} /> : null}
          {tab === "state" && checkpoints.isSuccess ? <StateAtCheckpoint run={run.id} current={record.current} before={record.before} /> : null}
        </Boundary>
        {step ? <StepPanel run={run.id} seq={step.seq} /> : null}
      </div>
    </>
  );
}

function Head({ run, at }: { run: Run; at: number | undefined }) {
  const now = useNow();
  return (
    <header className="run-head">
      <p className="muted small">
        <Link to="/runs">{t("title")}</Link> {"›"} <Link to="/runs" search={{ q: `flow:${run.flow}` }}>{run.flow}</Link>
      </p>
      <div className="run-line">
        <h1>
          {run.flow} <span className="code muted">{run.id.slice(0, 8)}</span>
        </h1>
        <StatusBadge shown={runWord(run.status, run.wakesAt ? shortTime(new Date(run.wakesAt), new Date(now)) : "")} />
        <RunActions run={run} at={at} />
      </div>
      <p className="muted small">
        {t("version", { version: run.version.slice(0, 12) })} {"·"} {t("startedAt")} <Moment at={run.createdAt} />
        {run.startedBy ? ` · ${t("startedBy", { person: run.startedBy })}` : ""}
      </p>
      <Lineage run={run} />
      {run.error ? <p className="run-error">{run.error}</p> : null}
      {run.status === "pending_input" ? (
        <p>
          <Link to="/inbox/$view" params={{ view: "all" }} search={{ q: `run:${run.id}` }}>{t("openQuestions")}</Link>
        </p>
      ) : null}
    </header>
  );
}
