/** The record that all parts of a run's page show, from the address. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type Point, placeOf } from "@/models/timeline";
import type { Checkpoint } from "@/services/runs";

export type ShownRecord = {
  /** The record in the address; undefined: the latest. */
  at: number | undefined;
  place: number;
  /** Where it stands; null: the latest, as the run is now. */
  point: Point | null;
  current: Checkpoint | undefined;
  before: Checkpoint | undefined;
  go: (place: number) => void;
};

export function useRecord(run: string, all: Checkpoint[]): ShownRecord {
  const { at } = useSearch({ strict: false });
  const navigate = useNavigate();
  const place = placeOf(all, at);
  const current = all[place];
  const go = (next: number) => {
    const found = all[Math.max(0, Math.min(all.length - 1, next))];
    if (found === undefined) return;
    const seq = next >= all.length - 1 ? undefined : found.seq;
    void navigate({
      to: "/runs/$run", params: { run }, replace: true, resetScroll: false,
      search: (old: object) => ({ ...old, at: seq, step: undefined }),
    });
  };
  const point = at === undefined || current === undefined ? null : { seq: current.seq, at: current.at };
  return { at, place, point, current, before: all[place - 1], go };
}
