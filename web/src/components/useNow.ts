/** The server's clock: countdowns do not depend on the clock of this machine. */
import { useSyncExternalStore } from "react";

const EVERY = 15_000;
const SECOND = 1_000;
let offset = 0;

export function setServerTime(at: number): void {
  offset = at - Date.now();
  renewTimes();
}

export function serverNow(): number {
  return Date.now() + offset;
}

/** A clock that tells who watches it; it is right from the first look on, however long nobody has looked. */
function clockOf(every: number) {
  let now = serverNow();
  let timer: ReturnType<typeof setInterval> | undefined;
  const watchers = new Set<() => void>();
  const renew = () => {
    now = serverNow();
    for (const listener of watchers) listener();
  };
  const watch = (listener: () => void) => {
    watchers.add(listener);
    timer ??= setInterval(renew, every);
    if (serverNow() - now >= SECOND) renew();
    return () => {
      watchers.delete(listener);
      if (watchers.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    };
  };
  return { watch, renew, read: () => now };
}

const coarse = clockOf(EVERY);
const fine = clockOf(SECOND);

/** All who show a time are listener. */
export function renewTimes(): void {
  coarse.renew();
  fine.renew();
}

/** To the half minute; `byTheSecond`: for something that is under way before the reader's eyes. */
export function useNow(byTheSecond = false): number {
  const clock = byTheSecond ? fine : coarse;
  return useSyncExternalStore(clock.watch, clock.read);
}
