/** "Snoozed until 14:05. Undo (z)": for a few seconds; End the snooze does the same later. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent } from "react";
import { useKeys } from "@/app/useKeys";
import { Moment } from "@/components/Moment";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { failureOf } from "@/services/client";
import { unsnooze } from "@/services/holds";
import { word } from "@/words";
import { t } from "./text";

export type Snoozed = { hold: string; title: string; until: Date };
type SnoozeProps = { snoozed: Snoozed; onUndone: () => void; onOver: () => void };
const SHOWN = 10_000;

export function SnoozeBar({ snoozed, onUndone, onOver }: SnoozeProps) {
  const { hold, title, until } = snoozed;
  const client = useQueryClient();
  const isOffline = useOffline();
  const undoing = useAction({
    mutationFn: () => unsnooze(hold),
    onSuccess: () => {
      for (const key of [["marks", hold], ["history", hold], ["holds", "count"]]) void client.invalidateQueries({ queryKey: key });
      onUndone();
    },
  });
  const over = useEffectEvent(() => {
    if (undoing.isIdle) onOver();
  });
  useEffect(() => {
    const timer = setTimeout(() => over(), SHOWN);
    return () => clearTimeout(timer);
  }, []);
  const undo = () => (undoing.isPending || isOffline ? undefined : undoing.mutate());
  useKeys([{ keys: "z", group: t("detail"), label: word("undo"), run: undo }]);
  return (
    <output className="toast">
      <span>{t("snoozedUntil", { title })} <Moment at={until.toISOString()} /></span>
      {undoing.isError ? <span>{failureOf(undoing.error).title}</span> : null}
      <button type="button" className="button" disabled={undoing.isPending || isOffline} onClick={undo}>
        {word("undo")}
        <kbd aria-hidden="true">{"z"}</kbd>
      </button>
    </output>
  );
}
