/** Runs: the list, one run, and what can be done with it. */
import type { RunDetail, RunStatus, RunWire } from "@client";
import { plainText } from "@/models/values";
import { client, requireFields } from "./client";
import { personOf } from "./holds";

/** `kind`: also one that only a newer server has. */
export type MachineWait = { kind: "event" | "callback" | "run" | "queue" | "other"; name: string; key: string; until: string | null };
/** `machineWaits`: what it waits for that no person answers. `asks`: it waits for the answer of a person. `answered`: its
 * answer is recorded, and a worker is to resume it. `missing`: what it needs of a worker and no live one has. */
export type Waits = { machineWaits: MachineWait[]; asks: boolean; answered: boolean; missing: string[] };
export type Run = Waits & {
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
  /** Why it waits although it is running; only of one run. */
  unstored: string;
};
export type RunPage = { runs: Run[]; next: string | null };
export type RunAction = "cancel" | "resume" | "retry" | "fork" | "rewind";
/** `repeated`: nodes whose effects outside happen once more, to which the person has to agree. */
export type ActionPreview = { record: number; head: number; etag: string; text: string[]; repeated: string[] };
export type Change = { record?: number; scratch?: Record<string, unknown>; repeatEffects?: boolean; reason: string };
export async function listRuns(q: string, cursor: string | null): Promise<RunPage> {
  const page = await client.listRuns({ q: q || null, limit: 100, cursor });
  return { runs: page.items.map(runOf), next: page.next ?? null };
}

const MOST_FORKS = 20;

/** The newest forks of a run. */
export async function listForks(id: string): Promise<Run[]> {
  return (await client.listRuns({ forked_from: id, limit: MOST_FORKS })).items.map(runOf);
}

/** Of each status, whatever the page of the list. */
export async function countRuns(q: string): Promise<Record<string, number>> {
  return (await client.countRuns({ q: q || null })).by_status;
}

export async function getRun(id: string): Promise<Run> {
  return runOf(await client.getRun(id));
}

/** What the action would do to the run as it is now. The etag lets it be done only to this run. */
export async function previewAction(run: string, action: RunAction, record: number | undefined): Promise<ActionPreview> {
  const { etag } = await client.request("getRun", run);
  const found = await client.previewRunChange(run, { action, seq: record ?? null });
  const unguarded = found.repeated_effects.filter((each) => !each.guarded).map((each) => each.node);
  const repeated = [...new Set([...unguarded, ...(found.refused_without_consent ?? [])])];
  return { record: found.record, head: found.head, etag: etag ?? "", text: found.text, repeated };
}

/** What a fork or a rewind with these changes does, as sentences. */
export async function previewWay(run: string, action: RunAction, record: number, scratch: Record<string, unknown>): Promise<string[]> {
  const found = await client.previewRunChange(run, { action, seq: record, patch: { scratch } });
  return (found.way ?? []).map((each) => each.text);
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

export const MOST_BULK = 500;
/** `discard`: only dead letters. */
export type BulkAction = "cancel" | "retry" | "discard";
/** `texts`: in a preview what would happen to it. */
export type BulkChange = { run: string; done: boolean; status: string; why: string; dead: boolean; texts: string[] };

/** What would happen to each, or what has happened. */
export async function changeMany(runs: string[], action: BulkAction, preview: boolean, reason = ""): Promise<BulkChange[]> {
  const found = await client.changeManyRuns({ runs, action, preview, reason: reason || null });
  return found.items.map((each) => ({
    run: each.run, done: each.done, status: each.status ?? "", why: plainText(each.why ?? ""), dead: each.dead ?? false, texts: (each.text ?? []).map(plainText),
  }));
}

function machineWaitOf(wire: NonNullable<RunWire["waits_for"]>[number]): MachineWait {
  const rest = { key: plainText(wire.key ?? ""), until: wire.until ?? null };
  if (wire.event) return { kind: "event", name: plainText(wire.event), ...rest };
  if (wire.callback) return { kind: "callback", name: plainText(wire.callback), ...rest };
  if (wire.run) return { kind: "run", name: wire.run, ...rest };
  return wire.queue ? { kind: "queue", name: plainText(wire.queue), ...rest } : { kind: "other", name: "", ...rest };
}

export function waitsOf(wire: RunWire): Waits {
  return { machineWaits: (wire.waits_for ?? []).map(machineWaitOf), asks: wire.asks ?? false, answered: wire.answered ?? false, missing: (wire.missing ?? []).map(plainText) };
}

function runOf(given: RunWire | RunDetail): Run {
  const wire = requireFields(given, ["id", "flow", "status"]);
  return {
    id: wire.id,
    flow: wire.flow,
    version: wire.version,
    status: wire.status,
    startedBy: personOf(wire.started_by ?? ""),
    createdAt: wire.created_at ?? "",
    endedAt: wire.ended_at ?? null,
    wakesAt: wire.wakes_at ?? null,
    ...waitsOf(wire),
    // What a person has stopped did not fail: its class says nothing more than the status.
    error: plainText(wire.error ?? "").replace(wire.status === "cancelled" ? /^RunCancelledError:? ?/ : /^$/, ""),
    head: wire.head ?? 0,
    eventSeq: wire.event_seq ?? 0,
    dead: wire.dead ?? false,
    readOnly: wire.read_only ?? false,
    forkedFrom: wire.forked_from ?? "",
    supersededBy: wire.superseded_by ?? "",
    parentRun: wire.parent_run ?? "",
    unstored: plainText(("unstored" in wire && wire.unstored) || ""),
  };
}
