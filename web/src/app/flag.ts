/** Something that becomes true once while the page is open. */
import { useSyncExternalStore } from "react";

export type Flag = { raise: () => void; use: () => boolean };

export function createFlag(): Flag {
  let raised = false;
  const watchers = new Set<() => void>();
  const watch = (listener: () => void) => {
    watchers.add(listener);
    return () => watchers.delete(listener);
  };
  return {
    raise() {
      raised = true;
      for (const listener of watchers) listener();
    },
    use: () => useSyncExternalStore(watch, () => raised),
  };
}

/** The session has ended. */
export const signedOut = createFlag();
/** Another person has signed in in this browser. */
export const otherPerson = createFlag();
/** The server has another release, or a part of this one is gone. */
export const newRelease = createFlag();
