/** Why and where runs fail, and how long nodes take, from the latest runs. */
import type { FlowRun, NodeVisit } from "@/services/flows";

export type FailureGroup = { error: string; runs: FlowRun[] };
export type NodeFacts = { node: string; visits: number; failed: number; failedRuns: string[]; retries: number; p50: number | null; p95: number | null };

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

/** In the order in which nodes were first visited. Items of a map count as one node. */
export function nodeFacts(visits: readonly NodeVisit[]): NodeFacts[] {
  const found = new Map<string, NodeVisit[]>();
  for (const each of visits) {
    const name = each.node.replaceAll(/\.\d+\[\d+\]|\[\d+\]/g, "");
    found.set(name, [...(found.get(name) ?? []), each]);
  }
  return [...found].map(([node, same]) => {
    const times = same.flatMap((each) => (each.took === null ? [] : [each.took])).toSorted((left, right) => left - right);
    const failed = same.filter((each) => each.state === "failed");
    return {
      node,
      visits: same.length,
      failed: failed.length,
      failedRuns: [...new Set(failed.map((each) => each.run))],
      retries: same.reduce((sum, each) => sum + Math.max(0, each.attempts - 1), 0),
      p50: quantile(times, 0.5),
      p95: quantile(times, 0.95),
    };
  });
}

/** The smallest value that this share of the values does not exceed. */
export function quantile(sorted: readonly number[], share: number): number | null {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}
