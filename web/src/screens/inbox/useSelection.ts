/** The rows that are chosen, also those that are no longer kept in the list. */
import { useState } from "react";
import { between } from "@/models/selection";
import type { Hold } from "@/services/holds";

/** `last`: the row that was chosen last, where a range begins. */
type State = { list: string; holds: ReadonlyMap<string, Hold>; summary: string; round: number; last: string };
export type Selection = ReturnType<typeof useSelection>;

export function useSelection(list: string, rows: readonly Hold[]) {
  const [state, setState] = useState<State>({ list, holds: new Map(), summary: "", round: 0, last: "" });
  const holds = state.list === list ? state.holds : new Map<string, Hold>();
  const set = (next: ReadonlyMap<string, Hold>, summary = "", round = state.round, last = "") => setState({ list, holds: next, summary, round, last });
  const known = (id: string) => rows.find((row) => row.id === id) ?? holds.get(id);
  const add = (ids: readonly string[]) => {
    const more = ids.map(known).filter((each) => each !== undefined && isOpen(each)) as Hold[];
    set(new Map([...holds, ...more.map((each) => [each.id, each] as const)]), "", state.round, ids.at(-1));
  };
  const toggle = (id: string) => (holds.has(id) ? set(new Map([...holds].filter(([each]) => each !== id))) : add([id]));
  const extend = (from: string, to: string) => add(between(rows.map((row) => row.id), from, to));
  return {
    ids: new Set(holds.keys()) as ReadonlySet<string>,
    chosen: [...holds.keys()].map(known) as Hold[],
    summary: state.list === list ? state.summary : "",
    /** Another round begins with another selection: what was asked about the one before is over. */
    round: `${list} ${state.round}`,
    toggle,
    extend,
    /** With Shift, all from the row that was chosen last. */
    choose: (id: string, isRange: boolean) => (isRange && holds.has(state.last) ? extend(state.last, id) : toggle(id)),
    clear: () => set(new Map(), "", state.round + 1),
    /** As it is chosen, without what was said about it. */
    reset: () => set(holds, "", state.round + 1),
    /** What failed stays chosen. */
    keep: (left: readonly string[], summary: string) => set(new Map([...holds].filter(([id]) => left.includes(id))), left.length === 0 ? summary : ""),
  };
}

function isOpen(hold: Hold): boolean {
  return hold.status === "pending" && hold.placedUntil === null;
}
