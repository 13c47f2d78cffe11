/** Gives the focus back to where it was, when a part that took it goes. */
import { useEffect, useRef } from "react";

/** `orElse`: where that is gone too. */
export function useFocusBack(orElse?: () => void): void {
  const before = useRef(document.activeElement);
  const other = useRef(orElse);
  useEffect(() => {
    const place = before.current;
    const next = other.current;
    return () => {
      if (document.activeElement !== null && document.activeElement !== document.body) return;
      if (place instanceof HTMLElement && place !== document.body && place.isConnected) place.focus();
      else next?.();
    };
  }, []);
}
