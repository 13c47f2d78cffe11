/** Calls at most so often, however many changes there are: the last one counts. */
import { useCallback, useEffect, useEffectEvent, useRef, useState } from "react";
import { throttled } from "./throttle";

export function useRest(act: () => Promise<unknown>, rest?: number): () => void {
  const run = useEffectEvent(act);
  const start = useRef(() => {});
  useEffect(() => {
    const made = throttled(() => run(), rest);
    start.current = made.call;
    return made.stop;
  }, [rest]);
  return useCallback(() => start.current(), []);
}

const SELDOM = 3_000;

/** The value as it was a moment ago, and at last as it is: for what need not be read again with each event. */
export function useSeldom<T>(value: T): T {
  const [seen, see] = useState(value);
  const renew = useRest(async () => see(value), SELDOM);
  useEffect(() => {
    if (value !== seen) renew();
  }, [value, seen, renew]);
  return seen;
}
