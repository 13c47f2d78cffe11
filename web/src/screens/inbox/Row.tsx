/** One hold in the list: how urgent, what, whose, since when, until when. */
import { memo } from "react";
import { Icon } from "@/components/Icon";
import { useNow } from "@/components/useNow";
import { roughly, shortTime } from "@/models/time";
import type { Hold } from "@/services/holds";
import { holdWord, priorityWord } from "@/words";
import { t } from "./text";

const SHAPES = ["▽", "·", "▲", "▲▲"];

type RowProps = {
  row: Hold;
  isCurrent: boolean;
  /** The one row that Tab comes to; the others are reached by j and k, or by arrows. */
  isReachable: boolean;
  isChosen: boolean;
  isGone: boolean;
  onChoose: (id: string, isRange: boolean) => void;
  onOpen: (id: string) => void;
};

/** Made again only if something about it has changed: the list is, with each frame while it is scrolled. */
export const Row = memo(function Row({ row, isCurrent, isReachable, isChosen, isGone, onChoose, onOpen }: RowProps) {
  const now = useNow();
  const priority = priorityWord(row.priority);
  const due = row.expiresAt ? new Date(row.expiresAt).getTime() - now : null;
  const tabIndex = isReachable ? 0 : -1;
  return (
    <>
      <label className="row-choice">
        <input type="checkbox" tabIndex={tabIndex} checked={isChosen} disabled={row.status !== "pending" && !isChosen} onChange={({ nativeEvent }) => onChoose(row.id, (nativeEvent as MouseEvent).shiftKey)} />
        <span className="away">{t("choose", { title: row.title })}</span>
      </label>
      <button
        type="button"
        data-row={row.id}
        data-stop={row.id}
        tabIndex={tabIndex}
        className={`row ${isCurrent ? "current" : ""} ${isGone ? "dimmed" : ""}`}
        aria-current={isCurrent ? "true" : undefined}
        onClick={() => onOpen(row.id)}
      >
        <span className={`priority rank-${priority.rank}`} aria-hidden="true" />
        <span className="row-title" title={row.title}>{row.title}</span>
        <span className="row-time">{row.status === "pending" ? dueText(due, row.isPaused) : outcomeText(row)}</span>
        <span className="row-facts muted small">
          {isGone && row.status === "pending" ? <strong>{t("left")}</strong> : null}
          {row.outcome?.by ? <strong>{t("decidedBy", { person: row.outcome.by, age: row.outcome.at ? roughly(now - new Date(row.outcome.at).getTime()) : "none" })}</strong> : null}
          {row.placedBy ? <strong>{t("placedBy", { person: row.placedBy })}</strong> : null}
          <span className={`rank-${priority.rank}`}><span aria-hidden="true">{SHAPES[priority.rank] ?? "·"}</span> {priority.word}</span>
          {row.isAgent ? <span className="row-agent"><span aria-hidden="true">{t("byAgent")}</span><span className="away">{t("byAgentAway")}</span></span> : null}
          <span className="row-name">{row.flow}</span>
          <span className="row-name">{row.assignee || t("nobody")}</span>
          {row.confidence === null || row.outcome || row.placedBy || row.snoozedUntil ? null : <span>{t("sure", { percent: Math.round(row.confidence * 100) })}</span>}
          {row.comments ? <span className="row-comments"><Icon name="speech" /><span aria-hidden="true">{row.comments}</span><span className="away">{t("comments", { count: row.comments })}</span></span> : null}
          {row.snoozedUntil ? <strong className="row-asleep"><Icon name="moon" /><span className="away">{t("asleepAway")}</span> {t("asleep", { time: shortTime(new Date(row.snoozedUntil), new Date(now)) })}</strong> : null}
          {row.outcome?.at || row.placedBy || row.snoozedUntil ? null : <span>{t("age", { age: roughly(now - new Date(row.createdAt).getTime()) })}</span>}
        </span>
      </button>
    </>
  );
});

function outcomeText(row: Hold): string {
  return row.status === "resolved" && row.outcome ? row.outcome.label : holdWord(row.status).word;
}

function dueText(ms: number | null, isPaused: boolean): string {
  if (ms === null) return "";
  if (isPaused) return t("deadlinePaused");
  return ms >= 0 ? t("due", { time: roughly(ms) }) : t("overdue", { time: roughly(ms) });
}
