/** The connection, as hooks. */
import { createContext, useContext, useEffect, useEffectEvent, useSyncExternalStore } from "react";
import type { Change, RunChange } from "@/services/live";
import { LiveConnection, type LiveState } from "./connection";

export const Live = createContext<LiveConnection>(new LiveConnection([]));

export function useLiveState(): LiveState {
  const connection = useContext(Live);
  return useSyncExternalStore(connection.watch, () => connection.state);
}

/** Grows whenever something may have been missed: whoever shows a list reads it again. */
export function useGaps(): number {
  const connection = useContext(Live);
  return useSyncExternalStore(connection.watch, () => connection.gaps);
}

export function useHoldChanges(heard: (change: Change) => void): void {
  const connection = useContext(Live);
  const told = useEffectEvent(heard);
  useEffect(() => connection.onHolds((change) => told(change)), [connection]);
}

/** The id of each run that changes. */
export function useChangedRuns(heard: (run: string) => void): void {
  const connection = useContext(Live);
  const told = useEffectEvent(heard);
  useEffect(() => connection.onRuns((run) => told(run)), [connection]);
}

/** Events of a run after a number; `null`: not followed. */
export function useRunChanges(run: string | null, after: number, heard: (change: RunChange) => void): void {
  const connection = useContext(Live);
  const told = useEffectEvent(heard);
  const from = useEffectEvent(() => after);
  useEffect(() => {
    if (run === null) return undefined;
    return connection.onRun(run, from(), (change) => told(change));
  }, [connection, run]);
}
