import { useEffect, useRef, useState } from "react";

/** The fields that were left. While a button is pressed nothing is noted: an error that appears would move the button away. */
export function useLeft(): { left: ReadonlySet<string>; leave: (field: string) => void } {
  const [left, setLeft] = useState<ReadonlySet<string>>(new Set());
  const isDown = useRef(false);
  const waiting = useRef<string[]>([]);
  useEffect(() => {
    const pressed = () => {
      isDown.current = true;
    };
    const released = () => {
      isDown.current = false;
      const fields = waiting.current;
      waiting.current = [];
      // After the click that follows.
      if (fields.length > 0) setTimeout(() => setLeft((old) => new Set([...old, ...fields])));
    };
    window.addEventListener("pointerdown", pressed, true);
    window.addEventListener("pointerup", released, true);
    window.addEventListener("pointercancel", released, true);
    return () => {
      window.removeEventListener("pointerdown", pressed, true);
      window.removeEventListener("pointerup", released, true);
      window.removeEventListener("pointercancel", released, true);
    };
  }, []);
  const leave = (field: string) => {
    if (isDown.current) waiting.current.push(field);
    else setLeft((old) => new Set([...old, field]));
  };
  return { left, leave };
}
