/** What of the history is not shown, and why. */
import type { Timeline } from "@/services/runHistory";
import { t } from "./text";

/** `pruned`: the number of records that retention removed. */
export function HistoryNotes({ found, pruned }: { found: Timeline; pruned: number }) {
  return (
    <>
      {found.leftOut > 0 ? <p className="muted small timeline-note">{t("leftOut", { count: found.leftOut })}</p> : null}
      {pruned > 0 ? <p className="muted small timeline-note">{t("pruned", { first: pruned })}</p> : null}
      {found.damage ? (
        <p className="late timeline-note" role="alert">
          {found.damage} {t("readable")}
        </p>
      ) : null}
    </>
  );
}
