/** One run: its graph, timeline, events and state, all at the record that the slider names. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useEffect, useEffectEvent } from "react";
import { useKeys } from "@/app/useKeys";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { TabRow } from "@/components/TabRow";
import { useTitle } from "@/components/useTitle";
import { useChangedRuns, useMissed, useRunChanges } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { sidesOf } from "@/models/diff";
import { stepShown, visitOfRecord } from "@/models/timeline";
import { type Timeline as Found, getTimeline } from "@/services/runHistory";
import { type Run, getRun } from "@/services/runs";
import { word } from "@/words";
import { Compare } from "./Compare";
import { Events } from "./Events";
import { Graph } from "./Graph";
import { Postmortem } from "./Postmortem";
import { RecordSlider } from "./RecordSlider";
import { RUN_TABS } from "./routes";
import { RunHead } from "./RunHead";
import "./runs.css";
import { StateAtCheckpoint } from "./StateAtCheckpoint";
import { StepPanel } from "./StepPanel";
import { t } from "./text";
import { Timeline } from "./Timeline";
import { useRecord } from "./useRecord";
import { useSource } from "./useSource";

export function RunScreen() {
  const { run: id = "" } = useParams({ strict: false });
  const mayRead = useRight("runs:read");
  return (
    <main id="main" tabIndex={-1} className="page">
      {mayRead ? <RunPage key={id} id={id} /> : <Forbidden right="runs:read" />}
    </main>
  );
}

/** Changes come by themselves; this is for a connection that does not carry them. */
const EVERY = 10_000;

function RunPage({ id }: { id: string }) {
  const client = useQueryClient();
  const run = useQuery({ queryKey: ["run", id, "row"], queryFn: () => getRun(id) });
  useTitle(run.data ? [`${run.data.flow} ${id.slice(0, 8)}`, t("title")] : run.isPending ? null : [t("title")]);
  // From the last known event on: what came before is read by each part.
  const refresh = useRest(() => client.invalidateQueries({ queryKey: ["run", id] }));
  useRunChanges(run.data ? id : null, run.data?.eventSeq ?? 0, refresh);
  useMissed(refresh);
  useEvery(EVERY, run.data?.endedAt ? null : refresh);
  // The events of a run end with it; one that is retried is told here.
  useChangedRuns((changed) => {
    if (changed === id) refresh();
  });
  if (run.isPending) return <Skeleton />;
  // What was read once stays while it cannot be read again: the header says that there is no connection.
  if (run.data === undefined) return <Problem error={run.error} onRetry={() => void run.refetch()} />;
  return <RunParts run={run.data} />;
}

function useEvery(ms: number, act: (() => void) | null): void {
  const run = useEffectEvent(() => act?.());
  const isOn = act !== null;
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => run(), ms);
    return () => clearInterval(timer);
  }, [isOn, ms]);
}

const NOTHING: Found = { visits: [], leftOut: 0, damage: "", marks: [], firstWorker: "", taken: new Set(), first: 0, last: 0, tokens: 0, cost: 0 };

function RunParts({ run }: { run: Run }) {
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const client = useQueryClient();
  const timeline = useQuery({ queryKey: ["run", run.id, "timeline"], queryFn: () => getTimeline(run.id, client.getQueryData<Found>(["run", run.id, "timeline"])), structuralSharing: false, gcTime: 30_000 });
  const found = timeline.data ?? NOTHING;
  const records = { first: found.first, last: Math.max(found.last, run.head) };
  const record = useRecord(run.id, records, found.visits);
  const source = useSource(run);
  const tab = RUN_TABS.find((each) => each === search.tab) ?? "timeline";
  // These parts are about the run as a whole, or choose their records themselves.
  const isWhole = tab === "compare" || tab === "postmortem";
  const comparePage = () => void navigate({ to: "/runs/$run", params: { run: run.id }, search: (old: object) => ({ ...old, tab: "compare" as const }), resetScroll: false });
  useKeys([{ keys: "d", group: t("title"), label: word("compare"), run: comparePage }]);
  // A step inside a map is chosen by its record, before what is inside is read.
  const isPast = search.step === undefined && record.point !== null;
  const visit = isPast && record.record?.name ? visitOfRecord(found.visits, record.number, record.record.name) : stepShown(found.visits, search.step, record.point?.seq);
  // In the past a step is asked for by the record itself: its visit may have gone on later.
  const isThen = isPast && visit !== null && Boolean(record.record?.name);
  const asked = isThen ? record.number : (visit?.seq ?? -1);
  const step = isWhole ? -1 : (search.step ?? asked);
  const marked = visit?.seq ?? step;
  return (
    <>
      <RunHead run={run} at={record.point?.seq} spent={found} />
      <TabRow label={t("parts")} current={tab}>
        {RUN_TABS.map((name) => (
          <Link key={name} to="/runs/$run" params={{ run: run.id }} search={(old: object) => ({ ...old, tab: name })} aria-current={tab === name ? "page" : undefined} resetScroll={false}>
            {t(name)}
          </Link>
        ))}
      </TabRow>
      {isWhole ? null : <RecordSlider records={records} marks={found.marks} record={record} />}
      <div className={`run-body ${step >= 0 ? "with-step" : ""}`}>
        <Boundary resetKey={tab}>
          {timeline.isPending ? <Skeleton /> : null}
          {timeline.isError ? <Problem error={timeline.error} onRetry={() => void timeline.refetch()} /> : null}
          {tab === "graph" && timeline.isSuccess ? <Graph run={run} found={found} point={record.point} step={marked} /> : null}
          {tab === "timeline" && timeline.isSuccess ? <Timeline run={run.id} found={found} point={record.point} step={marked} pruned={found.first} /> : null}
          {tab === "events" ? <Events run={run.id} until={record.point?.at} last={run.eventSeq} /> : null}
          {tab === "postmortem" ? <Postmortem run={run} /> : null}
          {tab === "compare" && timeline.isSuccess && source !== undefined ? <Compare run={run} sides={sidesOf(run.id, search.at, search.to, records.first, source?.run)} last={run.head} /> : null}
          {tab === "state" && timeline.isSuccess ? <StateAtCheckpoint run={run.id} record={record.number} before={Math.max(records.first, record.number - 1)} /> : null}
        </Boundary>
        {step >= 0 ? <StepPanel run={run.id} seq={step} isPast={isThen} version={isThen ? "past" : stepVersion(found, step, run.head)} /> : null}
      </div>
    </>
  );
}

/** A step that has ended does not change any more, unless the run was resumed there. */
function stepVersion(found: Found, step: number, head: number): string {
  const visit = found.visits.find((each) => each.seq === step);
  return visit?.endedAt && visit.state === "done" ? visit.endedAt : String(head);
}
