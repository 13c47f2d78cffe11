/** Why and where runs fail. */
import type { FlowRun, NodeVisit } from "@/services/flows";

export type FailureGroup = { error: string; runs: FlowRun[] };

/** Runs with the same error, the most frequent first. `runs` are newest first, and stay so. */
export function groupsOf(runs: readonly FlowRun[]): FailureGroup[] {
  const found = new Map<string, FlowRun[]>();
  for (const run of runs) {
    const same = found.get(run.error);
    if (same) same.push(run);
    else found.set(run.error, [run]);
  }
  return [...found].map(([error, same]) => ({ error, runs: same })).toSorted((left, right) => right.runs.length - left.runs.length);
}

/** The node that failed last in a run. */
export function failedNode(visits: readonly NodeVisit[]): string {
  return visits.findLast((each) => each.state === "failed")?.node ?? "";
}
