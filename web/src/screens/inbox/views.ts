/** The views of the inbox, in their order. */
import type { View } from "@/services/holds";
import type { Right } from "@/services/session";
import type { inbox } from "@/locales/en/inbox";

export type ViewEntry = { view: View; label: keyof typeof inbox; counted: boolean; right?: Right; keys?: string };

export const VIEWS: readonly ViewEntry[] = [
  { view: "mine", label: "mine", counted: true, keys: "g m" },
  { view: "groups", label: "groups", counted: true, keys: "g g" },
  { view: "unassigned", label: "unassigned", counted: true, right: "holds:manage", keys: "g u" },
  { view: "asked", label: "asked", counted: true },
  { view: "watching", label: "watching", counted: false },
  { view: "snoozed", label: "snoozed", counted: false },
  { view: "breakpoints", label: "breakpoints", counted: false },
  { view: "done", label: "done", counted: false },
  { view: "all", label: "all", counted: false },
];

export function viewOf(name: string): View | null {
  return VIEWS.find((each) => each.view === name)?.view ?? null;
}
