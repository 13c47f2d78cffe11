/** The focus stays in a part of the page when what had it goes, or is disabled: keys would go nowhere. */
import { type FocusEvent, useEffect, useRef } from "react";

type Handlers = { onFocus: (event: FocusEvent) => void; onBlur: (event: FocusEvent) => void };

/** `next`: what gets it then. */
export function useKeepFocus(next: () => HTMLElement | null | undefined): Handlers {
  const held = useRef<Element | null>(null);
  const keep = () => {
    const last = held.current;
    // A button that is off now may have it until the page is drawn.
    if (last === null || isThere(last) || ![document.body, last].includes(document.activeElement ?? document.body)) return;
    held.current = null;
    next()?.focus({ preventScroll: true });
  };
  // With each change: one of them takes the element away, once all of the page has been drawn.
  useEffect(() => {
    if (held.current === null) return undefined;
    const frame = requestAnimationFrame(keep);
    return () => cancelAnimationFrame(frame);
  });
  return {
    onFocus: ({ target }) => {
      held.current = target;
    },
    // A person has gone elsewhere.
    onBlur: ({ target }) => {
      if (isThere(target)) held.current = null;
    },
  };
}

function isThere(element: Element): boolean {
  return element.isConnected && !element.matches(":disabled");
}
