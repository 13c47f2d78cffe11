/** One step of a run with everything that is recorded about it, and the artifacts of the run. */
import type { StepWire } from "@client";
import { plainText } from "@/models/values";
import { addressOf, client } from "./client";
import { type Visit, visitOf } from "./runHistory";

export type Failed = Record<string, string>;
export type Attempt = { number: number; reason: string; startedAt: string; endedAt: string | null; term: number; worker: string; failed: Failed | null; traceback: string };
export type Call = { name: string; effect: string; at: string; seq: number; value: unknown; failed: Failed | null; traceback: string; tokens: number; cost: number };
export type Emitted = { kind: string; at: string; data: unknown; attempt: number };
export type Step = Visit & {
  effect: string;
  workMs: number;
  input: unknown;
  output: unknown;
  failed: Failed | null;
  traceback: string;
  spans: Attempt[];
  calls: Call[];
  emitted: Emitted[];
  /** Names of the artifacts that it wrote. */
  artifacts: string[];
};

/** `isPast`: as it was at the record, without what came later. */
export async function getStep(run: string, seq: number, isPast: boolean): Promise<Step> {
  return stepOf(await client.getStep(run, String(seq), { past: isPast }), run);
}

export function artifactAddress(run: string, name: string): string {
  return addressOf(`/v1/runs/${encodeURIComponent(run)}/artifacts/${name.split("/").map(encodeURIComponent).join("/")}`);
}

export async function listArtifacts(run: string): Promise<string[]> {
  return (await client.listArtifacts(run)).items.map((each) => each.name);
}

const ARTIFACTS = "artifacts.";

export function stepOf(wire: StepWire, run: string): Step {
  return {
    ...visitOf(wire, run),
    effect: wire.effect,
    workMs: wire.work_ms,
    input: wire.input,
    output: wire.output,
    failed: wire.error_detail,
    traceback: plainText(wire.traceback),
    spans: wire.spans.map((each) => ({ number: each.number, reason: each.reason, startedAt: each.started_at, endedAt: each.ended_at, term: each.term, worker: each.worker, failed: each.error, traceback: plainText(each.traceback) })),
    calls: wire.calls.map((each) => ({ name: plainText(each.name), effect: each.effect, at: each.at, seq: each.seq, value: each.value, failed: each.error, traceback: plainText(each.traceback ?? ""), tokens: each.tokens, cost: each.cost })),
    emitted: wire.emitted.map((each) => ({ kind: each.kind, at: each.at, data: each.data, attempt: each.attempt ?? 1 })),
    artifacts: wire.changes.filter((each) => each.path.startsWith(ARTIFACTS) && each.op !== "delete").map((each) => each.path.slice(ARTIFACTS.length)),
  };
}
