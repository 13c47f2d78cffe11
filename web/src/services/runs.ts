/** Runs: the list, one run with its events, its visits and its state at a checkpoint. */
import type { CheckpointDetail, EventWire, RunStatus, RunWire, VisitWire } from "@client";
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
};
export type RunPage = { runs: Run[]; next: string | null };
export type RunFilter = { status: RunStatus[]; flow: string };
export type RunEvent = { number: number; at: string; type: string; node: string; scope: string; data: Record<string, unknown> };
export type Checkpoint = { id: string; seq: number; node: string; status: string; at: string };
export type StateAt = { id: string; seq: number; node: string; at: string; input: unknown; state: unknown; visits: Record<string, number> };
export type Visit = {
  node: string;
  visit: number;
  state: string;
  startedAt: string;
  endedAt: string | null;
  attempts: number;
  error: string;
  tokens: number;
};

export async function listRuns(filter: RunFilter, cursor: string | null): Promise<RunPage> {
  const page = await client.listRuns({ status: filter.status, flow: filter.flow || null, limit: 100, cursor });
  return { runs: page.items.map(runOf), next: page.next ?? null };
}

/** Counted from the newest runs, as many as one page has. `more`: there are older ones. */
export async function countRuns(status: RunStatus, flow: string): Promise<{ count: number; more: boolean }> {
  const page = await client.listRuns({ status: [status], flow: flow || null, limit: 100 });
  return { count: page.items.length, more: page.next !== null && page.next !== undefined };
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
      found.push({ id: each.id, seq: each.seq, node: each.node_id, status: each.status, at: each.created_at });
    }
    cursor = page.next ?? null;
  } while (cursor !== null && found.length < 2000);
  return found.toSorted((left, right) => left.seq - right.seq);
}

export async function getStateAt(run: string, checkpoint: string): Promise<StateAt> {
  return stateOf(await client.getCheckpoint(run, checkpoint));
}

export async function listVisits(run: string): Promise<Visit[]> {
  return (await client.getTimeline(run)).items.map(visitOf);
}

export async function cancelRun(id: string, reason: string): Promise<Run> {
  return runOf(await client.cancelRun(id, { reason }));
}

export async function resumeRun(id: string): Promise<Run> {
  return runOf(await client.resumeRun(id, {}));
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
  };
}

function visitOf(wire: VisitWire): Visit {
  return {
    node: wire.scope ? `${wire.scope}/${wire.node}` : wire.node,
    visit: wire.visit,
    state: wire.state,
    startedAt: wire.started_at,
    endedAt: wire.ended_at,
    attempts: wire.attempts,
    error: wire.error,
    tokens: wire.tokens,
  };
}
