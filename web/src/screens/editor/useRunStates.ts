import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useChangedRuns } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { statesOf } from "@/models/canvasView";
import { listNodeVisits } from "@/services/flows";

/** The state of each node in a run, as it changes; empty without a run. */
export function useRunStates(run: string): ReadonlyMap<string, string> {
  const client = useQueryClient();
  const visits = useQuery({ queryKey: ["documents", "visits", run], queryFn: () => listNodeVisits(run), enabled: run !== "", placeholderData: keepPreviousData });
  const refresh = useRest(() => client.invalidateQueries({ queryKey: ["documents", "visits", run] }));
  useChangedRuns((changed) => {
    if (changed === run) refresh();
  });
  const found = run === "" ? undefined : visits.data;
  return useMemo(() => statesOf(found ?? []), [found]);
}
