import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useChangedRuns } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { statesOf, takenIn } from "@/models/canvasView";
import { getRunMarks } from "@/services/flows";

/** The state of each node in a run and the edges that it took, as they change; empty without a run. */
export function useRunStates(run: string): { states: ReadonlyMap<string, string>; taken: ReadonlySet<string> } {
  const client = useQueryClient();
  const visits = useQuery({ queryKey: ["documents", "visits", run], queryFn: () => getRunMarks(run), enabled: run !== "", placeholderData: keepPreviousData });
  const refresh = useRest(() => client.invalidateQueries({ queryKey: ["documents", "visits", run] }));
  useChangedRuns((changed) => {
    if (changed === run) refresh();
  });
  const found = run === "" ? undefined : visits.data;
  return useMemo(() => ({ states: statesOf(found?.visits ?? []), taken: takenIn(found?.taken ?? []) }), [found]);
}
