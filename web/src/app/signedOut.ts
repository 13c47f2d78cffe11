/** Whether the session has ended while the page was open. */
import { useSyncExternalStore } from "react";

let ended = false;
const watchers = new Set<() => void>();

export function noteSignedOut(): void {
  if (ended) return;
  ended = true;
  for (const told of watchers) told();
}

export function useSignedOut(): boolean {
  return useSyncExternalStore(
    (told) => {
      watchers.add(told);
      return () => watchers.delete(told);
    },
    () => ended,
  );
}
