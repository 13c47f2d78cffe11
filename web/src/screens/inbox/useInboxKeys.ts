/** The keys of the list. */
import { useEffect, useRef } from "react";
import { useKeys } from "@/app/useKeys";
import type { Hold } from "@/services/holds";
import { t } from "./text";
import type { Selection } from "./useSelection";

type Keyed = { rows: readonly Hold[]; hold: string; selection: Selection; openRow: (id: string) => void; close: () => void };

export function useInboxKeys({ rows, hold, selection, openRow, close }: Keyed): { move: (by: number) => void } {
  const move = (by: number): string => {
    const from = hold || focusedRow();
    const place = rows.findIndex((row) => row.id === from);
    const next = rows[place >= 0 ? Math.max(0, Math.min(rows.length - 1, place + by)) : 0]?.id ?? "";
    if (next && next !== hold) openRow(next);
    return next;
  };
  const extend = (by: number) => {
    const to = move(by);
    if (to) selection.extend(hold || to, to);
  };
  const wasFloating = useFloating();
  const keys = [
    ["j", t("title"), t("keyNext"), () => void move(1)],
    ["]", t("title"), t("keyNext"), () => void move(1)],
    ["k", t("title"), t("keyBefore"), () => void move(-1)],
    ["[", t("title"), t("keyBefore"), () => void move(-1)],
    ["o", t("title"), t("keyOpen"), () => (hold ? focusTitle() : void move(0))],
    ["u", t("title"), t("keyBack"), close],
    ["Escape", t("title"), t("keyBack"), () => (wasFloating.current ? undefined : close())],
    ["/", t("title"), t("keySearch"), () => document.getElementById("inbox-search")?.focus()],
    ["x", t("select"), t("keySelect"), () => (hold ? selection.toggle(hold) : undefined)],
    ["J", t("select"), t("keySelectNext"), () => extend(1)],
    ["K", t("select"), t("keySelectBefore"), () => extend(-1)],
  ] as const;
  useKeys(keys.map(([each, group, label, run]) => ({ keys: each, group, label, run })));
  return { move: (by) => void move(by) };
}

/** Whether something floated above the page when the key was pressed: Escape closes that alone. */
function useFloating(): React.RefObject<boolean> {
  const found = useRef(false);
  useEffect(() => {
    const look = () => {
      found.current = document.querySelector("[role=dialog], [role=menu]") !== null;
    };
    window.addEventListener("keydown", look, true);
    return () => window.removeEventListener("keydown", look, true);
  }, []);
  return found;
}

/** Where the reader was: after Escape no hold is open, and its row has the focus. */
function focusedRow(): string {
  return document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"] ?? "";
}

/** From the row into the question. */
export function focusTitle(): void {
  document.querySelector<HTMLElement>(".hold-title")?.focus();
}
