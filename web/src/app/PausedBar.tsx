/** On every page: the runs that stand at a breakpoint, once there are any. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, lazy, useState } from "react";
import { useChangedRuns, useMissed } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { countPaused } from "@/services/pausedCount";
import { useRight } from "./useSession";

const BreakpointsBar = lazy(() => import("@/screens/runs/BreakpointsBar"));
/** A busy server is not asked more often. */
const REST = 3_000;

export function PausedBar() {
  return useRight("runs:read") ? <Paused /> : null;
}

function Paused() {
  const queries = useQueryClient();
  const { data: count = 0 } = useQuery({ queryKey: ["runs", "paused", "count"], queryFn: () => countPaused("") });
  const renew = useRest(() => queries.invalidateQueries({ queryKey: ["runs", "paused"] }), REST);
  useChangedRuns(renew);
  useMissed(renew);
  // It stays: what became of those that were continued is shown when none is paused any more.
  const [isShown, show] = useState(false);
  if (count > 0 && !isShown) show(true);
  return isShown ? (
    <Suspense fallback={null}>
      <BreakpointsBar />
    </Suspense>
  ) : null;
}
