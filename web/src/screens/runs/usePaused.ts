import { useQuery } from "@tanstack/react-query";
import { type PausedRuns, listPaused } from "@/services/breakpoints";

const NONE: PausedRuns = { count: 0, runs: new Set(), shown: [] };

/** The runs that stand at a breakpoint; read once for all parts of a page. */
export function usePaused(isWanted = true): PausedRuns {
  return useQuery({ queryKey: ["runs", "paused"], queryFn: listPaused, enabled: isWanted }).data ?? NONE;
}
