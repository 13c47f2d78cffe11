/** "Refund in 8 s. Undo (z)": the server decides when the window ends, whether or not this tab is open. */
import { useEffect, useEffectEvent, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { serverNow } from "@/components/useNow";
import { failureOf } from "@/services/client";
import type { Hold } from "@/services/holds";
import { notePlaced } from "@/services/session";
import { word } from "@/words";
import { t } from "./text";
import { useUndo } from "./UndoButton";

export type Decided = { hold: Hold; label: string };
/** `until`: when the first of them is final. */
export type Placed = { ids: string[]; until: string | null; label: string };
type UndoProps = { placed: Placed | null; onUndone: (holds: Hold[]) => void; onOver: () => void };

export function UndoBar(props: UndoProps) {
  return props.placed ? <Bar key={props.placed.ids.join(" ")} {...props} placed={props.placed} /> : <output className="toast away" />;
}

function Bar({ placed, onUndone, onOver }: UndoProps & { placed: Placed }) {
  const until = placed.until ? new Date(placed.until).getTime() : serverNow();
  const [left, setLeft] = useState(() => secondsUntil(until));
  const undoing = useUndo(placed.ids, onUndone);
  const over = useEffectEvent(() => {
    if (!undoing.isPending) onOver();
  });
  useEffect(() => notePlaced(placed.ids, until), [placed.ids, until]);
  useEffect(() => {
    const timer = setInterval(() => {
      const now = secondsUntil(until);
      setLeft(now);
      if (now <= -2) over();
    }, 250);
    return () => clearInterval(timer);
  }, [until]);
  useKeys(left > 0 ? [{ keys: "z", group: t("decide"), label: word("undo"), run: () => undoing.mutate() }] : []);
  return (
    <output className="toast">
      <span aria-hidden={left > 0 ? true : undefined}>
        {left > 0 ? t("inSeconds", { label: placed.label, seconds: left }) : t("taken", { label: placed.label })}
      </span>
      {left > 0 ? <span className="away">{t("placedAway", { label: placed.label })}</span> : null}
      {undoing.isError ? <span>{failureOf(undoing.error).title}</span> : null}
      {left > 0 ? (
        <button type="button" className="button" disabled={undoing.isPending} onClick={() => undoing.mutate()}>
          {word("undo")}
          <kbd aria-hidden="true">{"z"}</kbd>
        </button>
      ) : null}
    </output>
  );
}

function secondsUntil(at: number): number {
  return Math.ceil((at - serverNow()) / 1000);
}
