/** The history of a run: its events, visits, steps, and its state at a checkpoint. */
import type { CheckpointDetail, EventWire, VisitWire } from "@client";
import { plainText } from "@/models/values";
import type { GraphPicture } from "@/models/graph";
import { type JournalRecord, RECORDS } from "@/models/records";
import { type Folded, type Mark, PAUSED, type TimelineVisit, canContinue, withChanges } from "@/models/timeline";
import { client, requireFields, rowsOf } from "./client";

export type RunEvent = { number: number; at: string; type: string; node: string; scope: string; data: Record<string, unknown> };
export type StateAt = { id: string; seq: number; node: string; at: string; input: unknown; state: unknown; visits: Record<string, number>; lineage: { run: string; seq: number } | null };
export type Visit = TimelineVisit & {
  /** Where in the graph its node is. */
  path: string;
  run: string;
  /** Its record there. */
  record: number;
  tokens: number;
  cost: number;
  inside: Folded | null;
};
export type Timeline = {
  visits: Visit[];
  /** The number of earlier visits that were not read. */
  leftOut: number;
  damage: string;
  /** The worker that started the run; empty if it is not known. */
  firstWorker: string;
  marks: Mark[];
  /** The edges that were taken, with their paths. */
  taken: ReadonlySet<string>;
  first: number;
  last: number;
  /** Of all nodes, those inside of others too. */
  tokens: number;
  cost: number;
};

/** `last`: the number of the last of them. */
export async function listEvents(id: string, after: number): Promise<{ events: RunEvent[]; last: number }> {
  const page = await client.listEvents(id, { after, limit: 500 });
  return { events: rowsOf(page.items, ["number", "type"], eventOf), last: page.last };
}

/** A page of records, from one on. */
export async function listRecords(run: string, first: number): Promise<JournalRecord[]> {
  const found = await client.listRecords(run, { first, limit: RECORDS });
  return rowsOf(found.items, ["seq", "kind"], ({ seq, at, kind, name, attempt }) => ({ seq, at, kind, name, attempt }));
}

export async function getPostmortem(run: string, format: "md" | "html"): Promise<string> {
  return (await client.getPostmortem(run, { format })).text;
}

export async function getStateAt(run: string, checkpoint: string): Promise<StateAt> {
  return stateOf(await client.getCheckpoint(run, checkpoint));
}

/** The server reads the whole journal for each page: those before the latest are not read. */
const PAGE = 20_000;

/** With `old`, an earlier answer, only what has changed since is asked for.
 * The visits of the flow itself, those inside of maps and sub-flows counted; the latest if there are very many. */
export async function getTimeline(run: string, old?: Timeline): Promise<Timeline> {
  const since = old && canContinue(old.visits) ? old.last : null;
  const found = await client.getTimeline(run, { limit: PAGE, fold: "items", since });
  // Of a run that was pruned in the meantime everything is read anew.
  if (old && since !== null && found.horizon !== old.first) return getTimeline(run);
  const visits = found.items.map((each) => visitOf(each, run));
  return {
    visits: old && since !== null ? withChanges(old.visits, visits) : visits, leftOut: found.left_out, damage: found.damage ?? "", marks: found.marks, firstWorker: plainText(found.first_worker ?? "") || (old?.firstWorker ?? ""),
    taken: new Set(Object.keys(found.edges)), first: found.horizon, last: found.head,
    ...spentIn(Object.values(found.nodes)),
  };
}

function spentIn(nodes: readonly { tokens: number; cost: number }[]): { tokens: number; cost: number } {
  const cost = nodes.reduce((sum, each) => sum + each.cost, 0);
  // Sums of fractions: 0.1 + 0.2 is 0.3.
  return { tokens: nodes.reduce((sum, each) => sum + each.tokens, 0), cost: Number(cost.toPrecision(12)) };
}

/** The visits inside a visit, the latest if there are very many. */
export async function getInside(run: string, within: string): Promise<Visit[]> {
  const found = await client.getTimeline(run, { limit: PAGE, fold: "items", within });
  return found.items.map((each) => visitOf(each, run)).toSorted((left, right) => left.startedAt.localeCompare(right.startedAt) || BY_NUMBER.compare(left.name, right.name));
}

/** Items of a map begin together: `each[2]` comes before `each[10]`. */
const BY_NUMBER = new Intl.Collator("en", { numeric: true });

/** `open`: the paths of the maps and sub-flows whose inside is shown too. */
export async function getGraph(run: string, open: readonly string[]): Promise<{ flat: boolean; picture: GraphPicture }> {
  const { flat, picture } = await client.getRunGraph(run, { open: [...open] });
  const nodes = picture.nodes.map((each) => ({ ...each, label: plainText(each.label), detail: plainText(each.detail ?? ""), inside: each.inside ?? "" }));
  const edges = picture.edges.map(({ head_x, head_y, label_x, label_y, ...each }) => ({ ...each, headX: head_x, headY: head_y, labelX: label_x ?? 0, labelY: label_y ?? 0 }));
  return { flat, picture: { width: picture.width, height: picture.height, nodes, edges } };
}

/** A breakpoint has a name of its own in the graph; people know the node before which it stands. */
export function nodeOf(id: string): string {
  return id.replace(/__breakpoint$/, "");
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

const NO_WAITS: Visit["waits"] = [];
const NO_TRIALS: Visit["trials"] = [];

export function visitOf(given: VisitWire, run: string): Visit {
  const wire = requireFields(given, ["node", "state"]);
  return {
    node: wire.scope ? `${wire.scope.replace(/\/$/, "")}/${wire.node}` : wire.node,
    name: wire.name || wire.node,
    path: pathOf(wire.scope) + wire.node,
    // One text for all of them.
    run: wire.run === run ? run : wire.run,
    record: wire.seq ?? -1,
    ofSource: wire.run !== run,
    scope: wire.scope,
    visit: wire.visit,
    state: visitState(wire),
    startedAt: wire.started_at,
    endedAt: wire.ended_at,
    attempts: wire.attempts,
    error: plainText(wire.error),
    tokens: wire.tokens,
    cost: wire.cost,
    waits: wire.waits.length === 0 ? NO_WAITS : wire.waits.map((each) => ({ kind: each.breakpoint ? PAUSED : each.kind, since: each.since, until: each.until ?? null, about: plainText(each.about ?? "") })),
    trials: (wire.retries ?? []).length === 0 ? NO_TRIALS : wire.retries!.map((each) => ({ reason: each.reason, attempt: each.attempt, at: each.at, wakesAt: each.wake_at, seq: each.seq ?? -1, error: each.error ? `${each.error["type"]}: ${each.error["message"]}` : "" })),
    // A fork brings visits along whose records are those of its source.
    first: wire.run === run ? (wire.first ?? -1) : -1,
    seq: wire.run === run ? (wire.seq ?? -1) : -1,
    inside: wire.inside ? { within: wire.inside.within, visits: wire.inside.visits ?? 0, items: wire.inside.items ?? 0, done: wire.inside.done ?? 0, failed: wire.inside.failed ?? 0, open: wire.inside.open ?? 0 } : null,
  };
}

export function visitState({ state, waits }: Pick<VisitWire, "state" | "waits">): string {
  return state === "asking" && waits.some((each) => each.breakpoint && !each.until) ? PAUSED : state;
}

/** `send/pay/` for the scope `send.1[0]/pay.1[2]/`. */
function pathOf(scope: string): string {
  return scope.split("/").slice(0, -1).map((part) => `${part.replace(/\.\d+\[\d+\]$/, "")}/`).join("");
}
