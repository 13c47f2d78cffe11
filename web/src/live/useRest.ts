/** Calls at most so often, however many changes there are: the last one counts. */
import { useEffect, useEffectEvent, useRef } from "react";
import { throttled } from "./throttle";

export function useRest(act: () => Promise<unknown>): () => void {
  const run = useEffectEvent(act);
  const start = useRef(() => {});
  useEffect(() => {
    const made = throttled(() => run());
    start.current = made.call;
    return made.stop;
  }, []);
  return () => start.current();
}
