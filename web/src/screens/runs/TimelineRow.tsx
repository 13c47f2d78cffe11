/** One visit: its state, its name, its bars, its length. */
import { Link } from "@tanstack/react-router";
import { memo } from "react";
import { Icon } from "@/components/Icon";
import { Moment } from "@/components/Moment";
import { duration } from "@/models/time";
import { type Axis, type Mark, type Point, type Row, barsOf, lengthOf, visitAt } from "@/models/timeline";
import type { Visit } from "@/services/runHistory";
import { type Shown, visitWord } from "@/words";
import { t } from "./text";
import { Track } from "./Track";

type RowProps = {
  row: Row<Visit>;
  place: number;
  top: number;
  measure: (element: Element | null) => void;
  axis: Axis;
  resumes: readonly Mark[];
  now: number;
  point: Point | null;
  isShown: boolean;
  /** Its name among the rows, and whether it is the one that Tab comes to. */
  stop: string;
  isReachable: boolean;
  onToggle: (within: string) => void;
};

/** Made again only if something about it has changed: the list is, with each frame while it is scrolled. */
export const TimelineRow = memo(function TimelineRow({ row: { visit, depth, open }, place, top, measure, axis, resumes, now, point, isShown, stop, isReachable, onToggle }: RowProps) {
  const seen = visitAt(visit, point);
  const shown = seen ? visitWord(seen.state) : LATER;
  const bars = seen ? barsOf(seen, point ? new Date(point.at).getTime() : now) : [];
  const kinds = [seen ? "" : "later", isShown ? "shown" : ""].filter(Boolean).join(" ");
  return (
    <li ref={measure} data-index={place} className={`lane ${kinds}`} style={{ transform: `translateY(${top}px)` }}>
      <StateSign shown={shown} />
      <span className="lane-name" style={{ paddingInlineStart: depth * 16 }}>
        <Name visit={visit} isShown={isShown} stop={{ "data-stop": stop, tabIndex: isReachable ? 0 : -1 }} />
        {seen && visit.inside ? (
          <button type="button" className="lane-map muted small" tabIndex={isReachable ? 0 : -1} aria-expanded={open} onClick={() => onToggle(visit.inside!.within)}>
            <Icon name="arrow" />
            {t(visit.inside.failed > 0 ? "itemsFailed" : "items", { done: visit.inside.done, count: visit.inside.visits, failed: visit.inside.failed })}
          </button>
        ) : null}
        {visit.visit > 1 ? <span className="muted small">{t("visit", { number: visit.visit })}</span> : null}
        {seen && seen.attempts > 1 ? <span className="muted small">{t("attempts", { count: seen.attempts })}</span> : null}
      </span>
      <Track bars={bars} isAround={visit.inside !== null} axis={axis} role={shown.role} resumes={resumes} />
      <span className="muted small lane-time">{seen ? <Moment at={seen.startedAt} text={duration(lengthOf(bars))} /> : "–"}</span>
      {seen?.error && !isShown ? <span className="lane-error small">{seen.error.slice(0, 300)}</span> : null}
    </li>
  );
});

function Name({ visit, isShown, stop }: { visit: Visit; isShown: boolean; stop: { "data-stop": string; tabIndex: number } }) {
  const name = <strong>{visit.name}</strong>;
  if (visit.ofSource && visit.record >= 0) {
    return <Link to="/runs/$run" params={{ run: visit.run }} search={{ tab: "timeline", step: visit.record }} {...stop} title={t("ofSource")}>{name}</Link>;
  }
  if (visit.seq < 0) return name;
  return (
    <Link to="." search={(old: object) => ({ ...old, step: visit.seq })} {...stop} aria-current={isShown ? "true" : undefined} resetScroll={false}>
      {name}
    </Link>
  );
}

function StateSign({ shown }: { shown: Shown }) {
  return (
    <span className={`lane-state role-${shown.role}`} title={shown.word}>
      <Icon name={shown.icon} />
      <span className="away">{shown.word}</span>
    </span>
  );
}

const LATER: Shown = { word: t("later"), role: "queued", icon: "circle" };
