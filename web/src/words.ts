/** The word, icon and colour of every status. A value of the server without a word here does not compile. */
import { words } from "@/locales/en/words";
import { textOf } from "@/locales/text";
import type { HoldStatus, RunStatus } from "@/services/wire";

export type Role = "queued" | "running" | "input" | "sleeping" | "interrupted" | "completed" | "failed" | "cancelled";
export type Icon = "circle" | "play" | "moon" | "person" | "pause" | "broken" | "check" | "cross" | "bar";
type Word = keyof typeof words;
type Entry = { word: Word; role: Role; icon: Icon };
export type Shown = { word: string; role: Role; icon: Icon };

/** Buttons and statuses: the words of the whole app. */
export const word = textOf(words);

const RUNS: Record<RunStatus, Entry> = {
  pending: { word: "runQueued", role: "queued", icon: "circle" },
  running: { word: "runRunning", role: "running", icon: "play" },
  waiting: { word: "runSleeping", role: "sleeping", icon: "moon" },
  pending_input: { word: "runInput", role: "input", icon: "person" },
  resumable: { word: "runInterrupted", role: "interrupted", icon: "broken" },
  completed: { word: "runCompleted", role: "completed", icon: "check" },
  failed: { word: "runFailed", role: "failed", icon: "cross" },
  cancelled: { word: "runCancelled", role: "cancelled", icon: "bar" },
};

const HOLDS: Record<HoldStatus, Entry> = {
  pending: { word: "holdOpen", role: "input", icon: "person" },
  resolved: { word: "holdDecided", role: "completed", icon: "check" },
  expired: { word: "holdExpired", role: "interrupted", icon: "broken" },
  cancelled: { word: "holdWithdrawn", role: "cancelled", icon: "bar" },
};

/** States of a visit of a node. */
const VISITS: Record<string, Entry> = {
  done: { word: "visitDone", role: "completed", icon: "check" },
  failed: { word: "runFailed", role: "failed", icon: "cross" },
  unknown: { word: "visitUnknown", role: "interrupted", icon: "broken" },
  running: { word: "runRunning", role: "running", icon: "play" },
  asking: { word: "runInput", role: "input", icon: "person" },
  waiting: { word: "runSleeping", role: "sleeping", icon: "moon" },
  skipped: { word: "visitSkipped", role: "cancelled", icon: "bar" },
  cancelled: { word: "runCancelled", role: "cancelled", icon: "bar" },
};

export function visitWord(state: string): Shown {
  return shown(VISITS, state);
}

export const RUN_STATUSES = Object.keys(RUNS) as RunStatus[];

export function runWord(status: string, until = ""): Shown {
  const found = shown(RUNS, status);
  return status === "waiting" && until ? { ...found, word: word("runSleepingUntil", { time: until }) } : found;
}

export function holdWord(status: string): Shown {
  return shown(HOLDS, status);
}

/** Also for a status that only a newer server has: its own name. */
function shown(table: Record<string, Entry>, status: string): Shown {
  const found = Object.hasOwn(table, status) ? table[status] : undefined;
  if (found === undefined) return { word: status.replaceAll("_", " "), role: "queued", icon: "circle" };
  return { ...found, word: word(found.word) };
}

const PRIORITIES: Record<string, { word: Word; rank: number }> = {
  critical: { word: "priorityCritical", rank: 3 },
  high: { word: "priorityHigh", rank: 2 },
  medium: { word: "priorityNormal", rank: 1 },
  normal: { word: "priorityNormal", rank: 1 },
  low: { word: "priorityLow", rank: 0 },
};

export function priorityWord(priority: string): { word: string; rank: number } {
  const found = Object.hasOwn(PRIORITIES, priority) ? PRIORITIES[priority] : undefined;
  return found ? { word: word(found.word), rank: found.rank } : { word: priority, rank: 1 };
}
