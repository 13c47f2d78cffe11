/** The word, icon and colour of every value of the server that people read. One without a word does not compile. */
import { words } from "@/locales/en/words";
import { PAUSED } from "@/models/timeline";
import { textOf } from "@/locales/text";
import type { MachineWait, Waits } from "@/services/runs";
import type { Effect, HoldStatus, Priority, RunStatus, VisitState } from "@/services/wire";

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
const VISITS: Record<VisitState | typeof PAUSED, Entry> = {
  ready: { word: "visitReady", role: "queued", icon: "circle" },
  abandoned: { word: "visitAbandoned", role: "cancelled", icon: "bar" },
  stopped: { word: "visitStopped", role: "cancelled", icon: "bar" },
  done: { word: "visitDone", role: "completed", icon: "check" },
  failed: { word: "runFailed", role: "failed", icon: "cross" },
  unknown: { word: "visitUnknown", role: "interrupted", icon: "broken" },
  running: { word: "runRunning", role: "running", icon: "play" },
  asking: { word: "runInput", role: "input", icon: "person" },
  [PAUSED]: { word: "runPaused", role: "input", icon: "pause" },
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

const MACHINE_WAITS: Record<MachineWait["kind"], Word> = { event: "runWaitsEvent", callback: "runWaitsCallback", run: "runWaitsRun", queue: "runWaitsQueue", other: "runWaitsOther" };

/** A run that waits for what no person answers. */
export function machineWord(wait: MachineWait): Shown {
  return { word: word(MACHINE_WAITS[wait.kind]), role: "sleeping", icon: "circle" };
}

/** The status of a run, with the kind of thing that it waits for if it waits for no person. */
export function statusWord(run: { status: string } & Waits, until = ""): Shown {
  const [machine] = run.machineWaits;
  if (run.missing.length > 0) return { word: word("runWaitsWorker"), role: "queued", icon: "circle" };
  if (run.answered) return runWord("pending");
  return run.status === "pending_input" && machine && !run.asks ? machineWord(machine) : runWord(run.status, until);
}

/** A run that waits for input at a breakpoint. */
export function pausedWord(): Shown {
  return { word: word("runPaused"), role: "input", icon: "pause" };
}

export function holdWord(status: string): Shown {
  return shown(HOLDS, status);
}

function isKey<T extends object>(table: T, name: string): name is keyof T & string {
  return Object.hasOwn(table, name);
}

/** Also for a status that only a newer server has: its own name. */
function shown(table: Record<string, Entry>, status: string): Shown {
  const found = Object.hasOwn(table, status) ? table[status] : undefined;
  if (found === undefined) return { word: status.replaceAll("_", " "), role: "queued", icon: "circle" };
  return { ...found, word: word(found.word) };
}

const EFFECTS: Record<Effect, Word> = {
  pure: "effectPure",
  read: "effectRead",
  write: "effectWrite",
  external: "effectExternal",
  human: "effectHuman",
};

/** What a step does outside; also for an effect that only a newer server has: its own name. */
export function effectWord(effect: string): string {
  return isKey(EFFECTS, effect) ? word(EFFECTS[effect]) : effect;
}

const PRIORITIES: Record<Priority, { word: Word; rank: number }> = {
  critical: { word: "priorityCritical", rank: 3 },
  high: { word: "priorityHigh", rank: 2 },
  normal: { word: "priorityNormal", rank: 1 },
  low: { word: "priorityLow", rank: 0 },
};

export function priorityWord(priority: string): { word: string; rank: number } {
  if (!isKey(PRIORITIES, priority)) return { word: priority, rank: 1 };
  return { word: word(PRIORITIES[priority].word), rank: PRIORITIES[priority].rank };
}
