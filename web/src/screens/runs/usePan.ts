/** Moves a view by dragging, and zooms it with the wheel while Ctrl or Command is held. */
import { type RefObject, useEffect, useEffectEvent } from "react";
import { type View, zoomedAt } from "@/models/graph";

/** A press that moves less than this is a click. */
const LEAST = 4;

export function usePan(element: RefObject<HTMLElement | null>, view: View, move: (view: View) => void): void {
  const dragged = useEffectEvent((from: View, x: number, y: number) => move({ ...from, x: from.x - x / from.zoom, y: from.y - y / from.zoom }));
  const current = useEffectEvent(() => view);
  const zoomed = useEffectEvent((by: number, at: { x: number; y: number }) => move(zoomedAt(view, by, at)));
  useEffect(() => {
    const box = element.current;
    if (box === null) return undefined;
    let start: { x: number; y: number; view: View; moved: boolean } | null = null;
    const down = (event: PointerEvent) => {
      if (event.button === 0) start = { x: event.clientX, y: event.clientY, view: current(), moved: false };
    };
    const go = (event: PointerEvent) => {
      if (start === null) return;
      const [x, y] = [event.clientX - start.x, event.clientY - start.y];
      if (!start.moved && Math.hypot(x, y) < LEAST) return;
      start.moved = true;
      dragged(start.view, x, y);
    };
    const up = () => {
      start = null;
    };
    const wheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const at = box.getBoundingClientRect();
      zoomed(Math.exp(-event.deltaY / 300), { x: event.clientX - at.left, y: event.clientY - at.top });
    };
    box.addEventListener("pointerdown", down);
    window.addEventListener("pointermove", go);
    window.addEventListener("pointerup", up);
    window.addEventListener("pointercancel", up);
    box.addEventListener("wheel", wheel, { passive: false });
    return () => {
      box.removeEventListener("pointerdown", down);
      window.removeEventListener("pointermove", go);
      window.removeEventListener("pointerup", up);
      window.removeEventListener("pointercancel", up);
      box.removeEventListener("wheel", wheel);
    };
  }, [element]);
}
