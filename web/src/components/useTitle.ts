/** The title of the page, in the browser's tab. Screen readers hear it when another page of the app has opened. */
import { useRouterState } from "@tanstack/react-router";
import { useEffect, useEffectEvent, useSyncExternalStore } from "react";
import { pageOf, titleOf } from "@/models/title";

const watchers = new Set<() => void>();
let said = "";
/** Null: none yet. That of the first page is read by the browser itself. */
let page: string | null = null;

let shown = titleOf([]);
let open = 0;

/** How many questions wait for this person. */
export function countInTitle(count: number): void {
  open = count;
  write();
}

function write(): void {
  document.title = open > 0 ? `(${open}) ${shown}` : shown;
}

function tell(title: string, at: string): void {
  shown = title;
  write();
  const isOther = page !== null && page !== at;
  page = at;
  if (!isOther) return;
  said = title;
  for (const listener of watchers) listener();
}

/** `null`: a part inside names the page. */
export function useTitle(parts: readonly string[] | null): void {
  const at = useRouterState({ select: (state) => pageOf(state.location.pathname) });
  const title = parts === null ? "" : titleOf(parts);
  // Not when the address changes: the page before is still there then, until the next has been read.
  const listener = useEffectEvent(() => tell(title, at));
  useEffect(() => {
    if (title !== "") listener();
  }, [title]);
}

function watch(listener: () => void): () => void {
  watchers.add(listener);
  return () => watchers.delete(listener);
}

export function useSaidTitle(): string {
  return useSyncExternalStore(watch, () => said);
}
