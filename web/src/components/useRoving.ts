/** One stop of Tab for a whole list: arrows, Home and End lead to its other rows. A row's link or button has `data-stop`. */
import { type FocusEvent, type KeyboardEvent, useMemo, useState } from "react";
import { roved } from "@/models/neighbour";

type Group = { onFocus: (event: FocusEvent<HTMLElement>) => void; onKeyDown: (event: KeyboardEvent<HTMLElement>) => void };

/** `show`: brings the row at this place into the page, if it is not there. */
export function useRoving(names: readonly string[], show?: (place: number) => void): { reachable: string; group: Group } {
  const [current, setCurrent] = useState("");
  const reachable = useMemo(() => (names.includes(current) ? current : (names[0] ?? "")), [names, current]);
  const onFocus = (event: FocusEvent) => {
    const name = stopOf(event.target);
    if (name !== null) setCurrent(name);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    const name = stopOf(event.target as Element);
    const next = name === null || event.altKey || event.ctrlKey || event.metaKey ? null : roved(event.key, names.indexOf(name), names.length);
    if (next === null) return;
    event.preventDefault();
    setCurrent(names[next]!);
    show?.(next);
    focusStop(event.currentTarget, names[next]!);
  };
  return { reachable, group: { onFocus, onKeyDown } };
}

export function stopOf(target: Element): string | null {
  return target.closest("[data-stop]")?.getAttribute("data-stop") ?? null;
}

/** Once it is in the page: what is scrolled to is drawn some frames later. */
export function focusStop(group: HTMLElement, name: string, attempts = 10): void {
  const stop = group.querySelector<HTMLElement>(`[data-stop="${CSS.escape(name)}"]`);
  if (stop) stop.focus();
  else if (attempts > 0) requestAnimationFrame(() => focusStop(group, name, attempts - 1));
}
