/** Runs that stand at a breakpoint. */
import type { RunWire } from "@client";
import { client } from "./client";
import { AT_BREAKPOINT, countPaused } from "./pausedCount";
import { nodeOf } from "./runHistory";

export type Paused = { hold: string; run: string; flow: string; node: string };
export type Continued = { hold: string; done: boolean; why: string };

/** `count`: of all; `runs`: their ids; `shown`: the newest, with the node before which each stands. */
export type PausedRuns = { count: number; runs: ReadonlySet<string>; shown: Paused[] };

const MOST_PAUSED = 6;

export async function listPaused(): Promise<PausedRuns> {
  const [{ items }, count] = await Promise.all([client.listRuns({ q: AT_BREAKPOINT, limit: 100 }), countPaused("")]);
  const found = await Promise.all(items.slice(0, MOST_PAUSED).map(pausedOf));
  return { count, runs: new Set(items.map((each) => each.id)), shown: found.filter((each) => each !== null) };
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
