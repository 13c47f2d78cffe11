/** Runs: the list, one run with its events, its visits and its state at a checkpoint. */
import type { CheckpointDetail, EventWire, RunStatus, RunWire, StepWire, VisitWire } from "@client";
import { client } from "./client";
import { personOf } from "./holds";

export type Run = {
  id: string;
  flow: string;
  version: string;
  status: RunStatus;
  startedBy: string;
  createdAt: string;
  endedAt: string | null;
  wakesAt: string | null;
  error: string;
  head: number;
  eventSeq: number;
  dead: boolean;
  readOnly: boolean;
  forkedFrom: string;
  supersededBy: string;
  parentRun: string;
};
export type RunPage = { runs: Run[]; next: string | null };
export type RunEvent = { number: number; at: string; type: string; node: string; scope: string; data: Record<string, unknown> };
export type Checkpoint = { id: string; seq: number; node: string; status: string; at: string };
export type StateAt = { id: string; seq: number; node: string; at: string; input: unknown; state: unknown; visits: Record<string, number>; lineage: { run: string; seq: number } | null };
export type Wait = { kind: string; since: string; until: string | null; about: string };
export type Visit = {
  node: string;
  scope: string;
  visit: number;
  state: string;
  startedAt: string;
  endedAt: string | null;
  attempts: number;
  error: string;
  tokens: number;
  cost: number;
  waits: Wait[];
  seq: number;
};
export type Failed = Record<string, string>;
export type Step = Visit & {
  effect: string;
  workMs: number;
  said: string;
  input: unknown;
  output: unknown;
  failed: Failed | null;
  trials: { attempt: number; reason: string; at: string; failed: Failed | null; wakesAt: string | null }[];
  calls: { name: string; effect: string; at: string; seq: number; value: unknown; failed: Failed | null; tokens: number; cost: number }[];
};
export type Timeline = { visits: Visit[]; leftOut: number; damage: string };
export type RunAction = "cancel" | "resume" | "retry" | "fork" | "rewind";
export type ActionPreview = { record: number; head: number; etag: string; text: string[]; unguarded: string[] };
export type Change = { record?: number; scratch?: Record<string, unknown>; repeatEffects?: boolean; reason: string };
export type Paused = { hold: string; run: string; flow: string; node: string };
export type Continued = { hold: string; done: boolean; why: string };

export async function listRuns(q: string, cursor: string | null): Promise<RunPage> {
  const page = await client.listRuns({ q: q || null, limit: 100, cursor });
  return { runs: page.items.map(runOf), next: page.next ?? null };
}

/** Of each status, whatever the page of the list. */
export async function countRuns(q: string): Promise<Record<string, number>> {
  return (await client.countRuns({ q: q || null })).by_status;
}

export async function getRun(id: string): Promise<Run> {
  return runOf(await client.getRun(id));
}

export async function listEvents(id: string, after: number): Promise<{ events: RunEvent[]; next: number | null }> {
  const page = await client.listEvents(id, { after, limit: 500 });
  return { events: page.items.map(eventOf), next: page.next };
}

export async function listCheckpoints(id: string): Promise<Checkpoint[]> {
  const found: Checkpoint[] = [];
  let cursor: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof client.listCheckpoints>> = await client.listCheckpoints(id, { limit: 200, cursor });
    for (const each of page.items) {
      found.push({ id: each.id, seq: each.seq, node: nodeOf(each.node_id), status: each.status, at: each.created_at });
    }
    cursor = page.next ?? null;
  } while (cursor !== null && found.length < 2000);
  return found.toSorted((left, right) => left.seq - right.seq);
}

export async function getStateAt(run: string, checkpoint: string): Promise<StateAt> {
  return stateOf(await client.getCheckpoint(run, checkpoint));
}

export async function getTimeline(run: string): Promise<Timeline> {
  const found = await client.getTimeline(run);
  return { visits: found.items.map(visitOf), leftOut: found.left_out, damage: found.damage ?? "" };
}

export async function getStep(run: string, seq: number): Promise<Step> {
  return stepOf(await client.getStep(run, String(seq)));
}

/** The graph with the state of each node, as an SVG document. */
export async function getDrawing(run: string): Promise<string> {
  return (await client.getRunDrawing(run)).text();
}

/** What the action would do to the run as it is now. The etag lets it be done only to this run. */
export async function previewAction(run: string, action: RunAction, record: number | undefined): Promise<ActionPreview> {
  const { etag } = await client.request("getRun", run);
  const found = await client.previewRunChange(run, { action, seq: record ?? null });
  const unguarded = found.repeated_effects.filter((each) => !each.guarded).map((each) => each.node);
  return { record: found.record, head: found.head, etag: etag ?? "", text: found.text, unguarded };
}

/** Gives the run to show afterwards: a fork and a rewind make a new one. */
export async function changeRun(run: Run, action: RunAction, etag: string, change: Change): Promise<string> {
  const options = { ifMatch: etag };
  if (action === "cancel") return (await client.cancelRun(run.id, { reason: change.reason }, options)).id;
  if (action === "retry" && run.dead) return (await client.retryDeadRun(run.id, options)).id;
  if (action === "resume" || action === "retry") {
    const body = { repeat_effects: change.repeatEffects ?? false };
    return (await client.resumeRun(run.id, body, {}, options)).id;
  }
  const patch = change.scratch && Object.keys(change.scratch).length > 0 ? { scratch: change.scratch } : null;
  const body = { seq: change.record ?? null, patch, repeat_effects: change.repeatEffects ?? false };
  return (await (action === "fork" ? client.forkRun(run.id, body, options) : client.rewindRun(run.id, body, options))).id;
}

const MOST_PAUSED = 12;

/** Runs that stand at a breakpoint, the newest, with the node before which each stands. */
export async function listPaused(): Promise<Paused[]> {
  const { items } = await client.listRuns({ q: "at:breakpoint", limit: MOST_PAUSED });
  const found = await Promise.all(items.map(pausedOf));
  return found.filter((each) => each !== null);
}

/** A breakpoint has a name of its own in the graph; people know the node before which it stands. */
function nodeOf(id: string): string {
  return id.replace(/__breakpoint$/, "");
}

async function pausedOf(run: RunWire): Promise<Paused | null> {
  const [newest] = (await client.listCheckpoints(run.id, { limit: 1 })).items;
  if (newest?.pending_input_context?.type !== "debug_breakpoint") return null;
  return { hold: newest.id, run: run.id, flow: run.flow, node: nodeOf(newest.node_id) };
}

export async function continuePaused(holds: string[]): Promise<Continued[]> {
  const found = await client.continueBreakpoints({ holds });
  return found.items.map((each) => ({ hold: each.hold, done: each.done, why: each.why ?? "" }));
}

function runOf(wire: RunWire): Run {
  return {
    id: wire.id,
    flow: wire.flow,
    version: wire.version,
    status: wire.status,
    startedBy: personOf(wire.started_by ?? ""),
    createdAt: wire.created_at ?? "",
    endedAt: wire.ended_at ?? null,
    wakesAt: wire.wakes_at ?? null,
    error: wire.error ?? "",
    head: wire.head ?? 0,
    eventSeq: wire.event_seq ?? 0,
    dead: wire.dead ?? false,
    readOnly: wire.read_only ?? false,
    forkedFrom: wire.forked_from ?? "",
    supersededBy: wire.superseded_by ?? "",
    parentRun: wire.parent_run ?? "",
  };
}

function eventOf(wire: EventWire): RunEvent {
  return { number: wire.number, at: wire.at ?? "", type: wire.type, node: wire.node, scope: wire.scope, data: wire.data };
}

function stateOf(wire: CheckpointDetail): StateAt {
  return {
    id: wire.id,
    seq: wire.seq,
    node: wire.node_id,
    at: wire.created_at,
    input: wire.original_input,
    state: wire.state,
    visits: wire.visits,
    lineage: lineageOf(wire.lineage ?? {}),
  };
}

function lineageOf(found: Record<string, unknown>): StateAt["lineage"] {
  const { run, seq } = found;
  return typeof run === "string" && run ? { run, seq: Number(seq ?? 0) } : null;
}

function visitOf(wire: VisitWire): Visit {
  return {
    node: wire.scope ? `${wire.scope.replace(/\/$/, "")}/${wire.node}` : wire.node,
    scope: wire.scope,
    visit: wire.visit,
    state: wire.state,
    startedAt: wire.started_at,
    endedAt: wire.ended_at,
    attempts: wire.attempts,
    error: wire.error,
    tokens: wire.tokens,
    cost: wire.cost,
    waits: wire.waits.map((each) => ({ kind: each.kind, since: each.since, until: each.until ?? null, about: each.about ?? "" })),
    seq: wire.seq ?? -1,
  };
}

function stepOf(wire: StepWire): Step {
  return {
    ...visitOf(wire),
    effect: wire.effect,
    workMs: wire.work_ms,
    said: wire.said,
    input: wire.input,
    output: wire.output,
    failed: wire.error_detail,
    trials: wire.trials.map((each) => ({ attempt: each.attempt, reason: each.reason, at: each.at, failed: each.error, wakesAt: each.wake_at })),
    calls: wire.calls.map((each) => ({ name: each.name, effect: each.effect, at: each.at, seq: each.seq, value: each.value, failed: each.error, tokens: each.tokens, cost: each.cost })),
  };
}
