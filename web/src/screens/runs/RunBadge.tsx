/** The status of a run, with the time until which it sleeps, what it waits for, and whether it stands at a breakpoint. */
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { exactTime, shortTime } from "@/models/time";
import type { Run } from "@/services/runs";
import { pausedWord, statusWord } from "@/words";
import { usePaused } from "./usePaused";

export function RunBadge({ run }: { run: Pick<Run, "id" | "status" | "wakesAt" | "machineWaits" | "asks" | "answered" | "missing"> }) {
  const now = useNow();
  const waits = run.status === "pending_input";
  const paused = usePaused(waits);
  if (waits && paused.runs.has(run.id)) return <StatusBadge shown={pausedWord()} />;
  const wakes = run.wakesAt ? new Date(run.wakesAt) : null;
  const [machine] = waits && !run.asks ? run.machineWaits : [];
  const exact = run.missing.length > 0 ? run.missing.join(", ") : machine ? (machine.key ? `${machine.name} (${machine.key})` : machine.name) : wakes && run.status === "waiting" ? exactTime(wakes) : "";
  return <StatusBadge shown={statusWord(run, wakes ? shortTime(wakes, new Date(now)) : "")} exact={exact} />;
}
