/** Flows: the list, versions, graphs, what a new version would break, and starting a run. */
import type { FlowVersion, FlowWire, RunStatus, RunWire, VisitWire } from "@client";
import { plainText } from "@/models/values";
import { addressOf, client, failureOf, rowsOf } from "./client";
import { personOf } from "./holds";
import { visitState } from "./runHistory";
import { type Waits, waitsOf } from "./runs";

export type Version = {
  id: string;
  label: string;
  createdAt: string;
  nodes: number;
  isLoaded: boolean;
  workers: number;
  isCurrent: boolean;
  isDocument: boolean;
};
export type Flow = { name: string; description: string; schema: Record<string, unknown>; versions: Version[] };
export type Node = { name: string; kind: string; effect: string; isBreakpoint: boolean };
export type Misfit = { node: string; why: string; fix: string; isSoft: boolean };
export type RunFit = { run: string; status: RunStatus; version: string; fits: boolean; misfits: Misfit[] };
export type Check = { version: string; fits: number; breaks: number; runs: RunFit[] };
export type Deployment = { name: string; version: string; mode: string };
export type FlowRun = Waits & {
  id: string;
  version: string;
  status: RunStatus;
  startedBy: string;
  createdAt: string;
  endedAt: string | null;
  wakesAt: string | null;
  error: string;
};
export type NodeVisit = { node: string; run: string; state: string; attempts: number; took: number | null; error: string };
export type NodeFacts = { node: string; visits: number; failed: number; failedRuns: string[]; retries: number; p50: number | null; p95: number | null; retriedRuns: string[]; p50Run: string; p95Run: string; waiting: number; waitingRuns: string[]; waited: number | null; waitedRun: string };
export type NewRun = {
  flow: string;
  version: string;
  input: Record<string, unknown>;
  key: string;
  lane: string;
  priority: number | null;
  breaks: string[];
};
export type Counts = Partial<Record<RunStatus, number>>;

export async function listFlows(): Promise<Flow[]> {
  return rowsOf((await client.listFlows()).items, ["name", "versions"], flowOf);
}

export async function getFlow(name: string): Promise<Flow> {
  return flowOf(await client.getFlow(name));
}

export async function countsOf(flow: string, version: string | null = null): Promise<Counts> {
  return (await client.countRuns({ flow, version })).by_status as Counts;
}

export async function listNodes(flow: string, version: string): Promise<Node[]> {
  return nodesIn((await client.getFlowVersion(flow, version)).graph, "");
}

export async function getInputSchema(flow: string, version: string): Promise<Record<string, unknown>> {
  return client.getInputSchema(flow, version);
}

/** Of the latest runs. Times in milliseconds. */
export async function getNodeFacts(flow: string): Promise<{ runs: number; nodes: NodeFacts[] }> {
  const found = await client.getFlowStats(flow);
  const nodes = found.nodes.map((each) => ({ node: each.node, visits: each.visits, failed: each.failed, failedRuns: each.failed_runs, retries: each.retries, p50: each.p50_ms, p95: each.p95_ms, retriedRuns: each.retried_runs ?? [], p50Run: each.p50_run ?? "", p95Run: each.p95_run ?? "", waiting: each.waiting ?? 0, waitingRuns: each.waiting_runs ?? [], waited: each.waited_p50_ms ?? null, waitedRun: each.waited_run ?? "" }));
  return { runs: found.runs, nodes };
}

/** The common form of every flow: nodes, edges and policies. */
export async function getGraph(flow: string, version: string): Promise<Record<string, unknown>> {
  return (await client.getFlowVersion(flow, version)).graph;
}

/** Nodes inside a map or a sub-flow have the names of the nodes around them in front: `send/pay`. */
function nodesIn(graph: Record<string, unknown>, around: string): Node[] {
  const inner = new Map(listOf(graph["subgraphs"]).map((each) => [each["name"], each]));
  return listOf(graph["nodes"]).flatMap((each) => {
    const name = around + String(each["id"] ?? "");
    const node = { name, kind: String(each["kind"] ?? ""), effect: String(each["effect"] ?? ""), isBreakpoint: each["breakpoint"] === true };
    const body = listOf([each["map"], each["subflow"], each["parallel"]])[0]?.["body"];
    const found = inner.get(body);
    return found === undefined ? [node] : [node, ...nodesIn(found, `${name}/`)];
  });
}

/** The server's picture of a version. Shown as an image: nothing in it runs. */
export function drawingAddress(flow: string, version: string): string {
  return addressOf(`/v1/flows/${encodeURIComponent(flow)}/versions/${encodeURIComponent(version)}/drawing`);
}

/** Only for a flow with a version that the server has loaded. */
export async function checkFlow(flow: string): Promise<Check> {
  const found = await client.checkFlow(flow);
  return { version: found.version, fits: found.fits, breaks: found.breaks, runs: found.runs.map(fitOf) };
}

export async function listDeployments(flow: string): Promise<Deployment[]> {
  const found = (await client.listDeployments()).items.filter((each) => each.flow === flow);
  return found.map(({ name, version, mode }) => ({ name, version, mode }));
}

export async function listFlowRuns(flow: string, status: RunStatus[], limit: number): Promise<FlowRun[]> {
  return rowsOf((await client.listRuns({ flow, status, limit })).items, ["id", "status"], runOf);
}

export async function listNodeVisits(run: string): Promise<NodeVisit[]> {
  return (await getRunMarks(run)).visits;
}

/** `taken`: the edges that the run took, by their paths. */
export async function getRunMarks(run: string): Promise<{ visits: NodeVisit[]; taken: string[] }> {
  const { items, edges } = await client.getTimeline(run);
  return { visits: items.map((each) => nodeVisitOf(each, run)), taken: Object.keys(edges) };
}

function nodeVisitOf(each: VisitWire, run: string): NodeVisit {
  return {
    node: each.scope ? `${each.scope}${each.scope.endsWith("/") ? "" : "/"}${each.node}` : each.node,
    run,
    state: visitState(each),
    attempts: each.attempts,
    took: each.ended_at === null ? null : new Date(each.ended_at).getTime() - new Date(each.started_at).getTime(),
    error: plainText(each.error),
  };
}

/** What a run was started with; an empty object if it has no checkpoint yet. */
export async function inputOf(run: string): Promise<Record<string, unknown>> {
  const first = (await client.listCheckpoints(run, { limit: 1 })).items[0];
  if (first === undefined) return {};
  const given = (await client.getCheckpoint(run, first.id)).original_input;
  return typeof given === "object" && given !== null && !Array.isArray(given) ? (given as Record<string, unknown>) : {};
}

/** The id of the run: of the one that the key has started before, if there is one. */
export async function startRun(given: NewRun): Promise<string> {
  const body = {
    flow: given.flow,
    version: given.version || null,
    input: given.input,
    lane: given.lane || null,
    priority: given.priority,
    breaks: given.breaks,
  };
  return (await client.createRun(body, { key: given.key })).id;
}

/** Errors by field. The server names a field of the input in quotes at the start of its sentence. */
export function errorsByField(error: unknown, fields: readonly string[]): { byField: Record<string, string>; rest: string[] } {
  const byField: Record<string, string> = {};
  const rest: string[] = [];
  for (const { field, message } of failureOf(error).errors) {
    const quoted = /^'([^']+)'/.exec(message)?.[1] ?? "";
    const name = [field, field.replace(/^input\./, ""), quoted].find((each) => fields.includes(each));
    if (name === undefined) rest.push(message);
    else byField[name] = message;
  }
  return { byField, rest };
}

function flowOf(wire: FlowWire): Flow {
  return {
    name: wire.name,
    description: wire.description ?? "",
    schema: wire.input_schema ?? {},
    versions: wire.versions.map(versionOf),
  };
}

function versionOf(wire: FlowVersion): Version {
  return {
    id: wire.version,
    label: wire.label,
    createdAt: wire.created_at,
    nodes: wire.nodes,
    isLoaded: wire.loaded,
    workers: wire.workers,
    isCurrent: wire.current ?? false,
    isDocument: wire.document ?? false,
  };
}

function runOf(wire: RunWire): FlowRun {
  return {
    id: wire.id,
    version: wire.version,
    status: wire.status,
    startedBy: personOf(wire.started_by ?? ""),
    createdAt: wire.created_at ?? "",
    endedAt: wire.ended_at ?? null,
    wakesAt: wire.wakes_at ?? null,
    error: plainText(wire.error ?? ""),
    ...waitsOf(wire),
  };
}

function fitOf(wire: Awaited<ReturnType<typeof client.checkFlow>>["runs"][number]): RunFit {
  return {
    run: wire.run,
    status: wire.status,
    version: wire.version,
    fits: wire.fits,
    misfits: wire.misfits.map((each) => ({ node: each.node, why: each.why, fix: each.fix, isSoft: each.soft })),
  };
}

function listOf(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter((each): each is Record<string, unknown> => typeof each === "object" && each !== null) : [];
}
