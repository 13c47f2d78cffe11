/** The views of the inbox, in their order. */
import type { View } from "@/services/holds";
import type { Right } from "@/services/session";
import type { inbox } from "@/locales/en/inbox";

export type ViewEntry = { view: View; label: keyof typeof inbox; counted: boolean; right?: Right; keys?: string; empty: keyof typeof inbox; emptyHint: keyof typeof inbox };

export const VIEWS: readonly ViewEntry[] = [
  { view: "mine", label: "mine", counted: true, keys: "g m", empty: "emptyMine", emptyHint: "emptyMineHint" },
  { view: "groups", label: "groups", counted: true, keys: "g g", empty: "emptyGroups", emptyHint: "emptyGroupsHint" },
  { view: "unassigned", label: "unassigned", counted: true, right: "holds:manage", keys: "g u", empty: "emptyUnassigned", emptyHint: "emptyUnassignedHint" },
  { view: "asked", label: "asked", counted: true, empty: "emptyAsked", emptyHint: "emptyAskedHint" },
  { view: "watching", label: "watching", counted: false, empty: "emptyWatching", emptyHint: "emptyWatchingHint" },
  { view: "snoozed", label: "snoozed", counted: false, empty: "emptySnoozed", emptyHint: "emptySnoozedHint" },
  { view: "breakpoints", label: "breakpoints", counted: false, empty: "emptyBreakpoints", emptyHint: "emptyBreakpointsHint" },
  { view: "done", label: "done", counted: false, empty: "emptyDone", emptyHint: "emptyDoneHint" },
  { view: "all", label: "all", counted: false, empty: "emptyAll", emptyHint: "emptyAllHint" },
];

/** Its name, and why it has nothing to show. */
export function entryOf(view: View): ViewEntry {
  return VIEWS.find((each) => each.view === view) ?? VIEWS.at(-1)!;
}

export function viewOf(name: string): View | null {
  return VIEWS.find((each) => each.view === name)?.view ?? null;
}
