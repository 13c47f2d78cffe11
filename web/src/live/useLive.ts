/** The connection, as hooks. */
import { createContext, useContext, useEffect, useEffectEvent, useState, useSyncExternalStore } from "react";
import type { Change, RunChange } from "@/services/live";
import { batched } from "./batch";
import { LiveConnection, type LiveState } from "./connection";

export const Live = createContext<LiveConnection>(new LiveConnection([]));

export function useLiveState(): LiveState {
  const connection = useContext(Live);
  return useSyncExternalStore(connection.watch, () => connection.state);
}

/** Nothing is sent then, and nothing is queued. */
export function useOffline(): boolean {
  return useLiveState() === "offline";
}

/** Grows whenever something may have been missed: the parts that show a list read it again. */
export function useGaps(): number {
  const connection = useContext(Live);
  return useSyncExternalStore(connection.watch, () => connection.gaps);
}

const MEANWHILE = 1000;

/** Called when something may have been missed: after a gap, and once for what happened between the first reading and
 * the first event. */
export function useMissed(act: () => void): void {
  const gaps = useGaps();
  const state = useLiveState();
  const [isEarly] = useState(state !== "live");
  const isLate = isEarly && state === "live" && gaps === 0;
  const missed = useEffectEvent(act);
  useEffect(() => {
    if (gaps > 0) missed();
  }, [gaps]);
  useEffect(() => {
    if (!isLate) return undefined;
    const timer = setTimeout(() => missed(), MEANWHILE);
    return () => clearTimeout(timer);
  }, [isLate]);
}

export function useHoldChanges(heard: (change: Change) => void): void {
  const connection = useContext(Live);
  const onEvent = useEffectEvent(heard);
  useEffect(() => connection.onHolds((change) => onEvent(change)), [connection]);
}

/** Changes of a moment together. `list` names who listens: what waits for another list is dropped. */
export function useHoldBatches(list: string, heard: (list: string, changes: Change[]) => Promise<void>): void {
  const connection = useContext(Live);
  const onEvent = useEffectEvent(heard);
  useEffect(() => {
    const batch = batched((change: Change) => change.hold, (changes) => onEvent(list, changes));
    const end = connection.onHolds(batch.add);
    return () => {
      end();
      batch.stop();
    };
  }, [connection, list]);
}

/** The id of each run that changes. */
export function useChangedRuns(heard: (run: string) => void): void {
  const connection = useContext(Live);
  const onEvent = useEffectEvent(heard);
  useEffect(() => connection.onRuns((run) => onEvent(run)), [connection]);
}

/** Events of a run after a number; `null`: not followed. */
export function useRunChanges(run: string | null, after: number, heard: (change: RunChange) => void): void {
  const connection = useContext(Live);
  const onEvent = useEffectEvent(heard);
  const from = useEffectEvent(() => after);
  useEffect(() => {
    if (run === null) return undefined;
    return connection.onRun(run, from(), (change) => onEvent(change));
  }, [connection, run]);
}
