/** The server's clock, to the half minute: countdowns do not depend on the clock of this machine. */
import { useSyncExternalStore } from "react";

const EVERY = 15_000;
let offset = 0;
let now = Date.now();
const watchers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

export function setServerTime(at: number): void {
  offset = at - Date.now();
  tick();
}

export function serverNow(): number {
  return Date.now() + offset;
}

function tick(): void {
  now = serverNow();
  for (const told of watchers) told();
}

export function useNow(): number {
  return useSyncExternalStore(
    (told) => {
      watchers.add(told);
      timer ??= setInterval(tick, EVERY);
      return () => {
        watchers.delete(told);
        if (watchers.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
    () => now,
  );
}
