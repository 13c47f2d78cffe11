import { useQuery } from "@tanstack/react-query";
import { getStateAt } from "@/services/runHistory";
import type { Run } from "@/services/runs";

type Source = { run: string; seq: number };

/** The run and the record that a fork came from; null if there is none, and undefined until it is read. */
export function useSource(run: Run): Source | null | undefined {
  const isFork = run.forkedFrom !== "";
  const start = useQuery({ queryKey: ["state", run.id, "record 0"], queryFn: () => getStateAt(run.id, "0"), enabled: isFork, staleTime: Number.POSITIVE_INFINITY, retry: false });
  if (isFork && start.isPending) return undefined;
  return start.data?.lineage ?? null;
}
