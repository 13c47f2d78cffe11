/** A row for each visit, a bar for each attempt, waits hatched. A map is one row until it is opened. */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Icon } from "@/components/Icon";
import { Notice } from "@/components/Problem";
import { useNow } from "@/components/useNow";
import { duration } from "@/models/time";
import { type Axis, type Bar, type Point, type Row, axisOf, barsOf, rowsOf, stateAt } from "@/models/timeline";
import type { Timeline as Found, Visit } from "@/services/runs";
import { type Shown, visitWord } from "@/words";
import { t } from "./text";

type TimelineProps = { found: Found; point: Point | null; step: number };

export function Timeline({ found, point, step }: TimelineProps) {
  const now = useNow();
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  if (found.visits.length === 0) return <Notice title={t("noVisits")} />;
  const axis = axisOf(found.visits.flatMap((each) => barsOf(each, now)));
  const toggle = (scope: string) => setOpen((old) => (old.has(scope) ? new Set([...old].filter((each) => each !== scope)) : new Set([...old, scope])));
  return (
    <section className="timeline panel" aria-label={t("timeline")}>
      {found.leftOut > 0 ? <p className="muted small timeline-note">{t("leftOut", { count: found.leftOut })}</p> : null}
      {found.damage ? <p className="late timeline-note">{found.damage}</p> : null}
      <ol>
        {rowsOf(found.visits, open).map((row) =>
          row.kind === "map" ? (
            <MapRow key={`map ${row.scope}`} row={row} axis={axis} now={now} point={point} step={step} onToggle={() => toggle(row.scope)} />
          ) : (
            <VisitRow key={`${row.visit.node} ${row.visit.visit}`} visit={row.visit} axis={axis} now={now} point={point} isShown={row.visit.seq >= 0 && row.visit.seq === step} />
          ),
        )}
      </ol>
    </section>
  );
}

type VisitRowProps = { visit: Visit; axis: Axis; now: number; point: Point | null; isShown: boolean };

function VisitRow({ visit, axis, now, point, isShown }: VisitRowProps) {
  const state = stateAt(visit, point);
  const shown = shownAs(state);
  const bars = barsOf(visit, now);
  const name = (
    <>
      <strong>{visit.node}</strong>
      {visit.visit > 1 ? <span className="muted small"> {t("visit", { number: visit.visit })}</span> : null}
      {visit.attempts > 1 ? <span className="muted small"> {t("attempts", { count: visit.attempts })}</span> : null}
    </>
  );
  return (
    <li className={`lane ${state === "later" ? "later" : ""} ${isShown ? "shown" : ""} ${visit.scope ? "inside" : ""}`}>
      <StateSign shown={shown} />
      {visit.seq >= 0 ? (
        <Link to="." search={(old: object) => ({ ...old, step: visit.seq })} className="lane-name" aria-current={isShown ? "true" : undefined} resetScroll={false}>
          {name}
        </Link>
      ) : (
        <span className="lane-name">{name}</span>
      )}
      <Track bars={bars} axis={axis} role={shown.role} />
      <span className="muted small lane-time">{duration(spanOf(visit, now))}</span>
      {visit.error && state !== "later" && !isShown ? <span className="lane-error small">{visit.error.slice(0, 300)}</span> : null}
    </li>
  );
}

type MapRowProps = { row: Extract<Row<Visit>, { kind: "map" }>; axis: Axis; now: number; point: Point | null; step: number; onToggle: () => void };

function MapRow({ row, axis, now, point, step, onToggle }: MapRowProps) {
  const states = row.visits.map((each) => stateAt(each, point));
  const worst = ["failed", "running", "asking", "waiting", "done"].find((each) => states.includes(each)) ?? "later";
  const shown = shownAs(worst);
  const bars = [...row.visits, ...(row.own ? [row.own] : [])].flatMap((each) => barsOf(each, now));
  const whole = { ...bars[0]!, kind: "attempt" as const, from: Math.min(...bars.map((each) => each.from)), to: Math.max(...bars.map((each) => each.to)) };
  const { own } = row;
  return (
    <li className={`lane ${worst === "later" ? "later" : ""} ${own && own.seq >= 0 && own.seq === step ? "shown" : ""}`}>
      <StateSign shown={shown} />
      <span className="lane-name">
        {own && own.seq >= 0 ? (
          <Link to="." search={(old: object) => ({ ...old, step: own.seq })} resetScroll={false}>
            <strong>{row.scope}</strong>
          </Link>
        ) : (
          <strong>{row.scope}</strong>
        )}
        <button type="button" className="lane-map muted small" aria-expanded={row.open} onClick={onToggle}>
          <Icon name="arrow" />
          {t("items", { done: states.filter((each) => each === "done").length, count: row.visits.length })}
        </button>
      </span>
      <Track bars={[whole]} axis={axis} role={shown.role} />
      <span className="muted small lane-time">{duration(whole.to - whole.from)}</span>
    </li>
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

const WAITS: Record<string, "waitPerson" | "waitTime" | "waitRetry"> = { person: "waitPerson", time: "waitTime", retry: "waitRetry" };

function waitText(bar: Bar): string {
  const known = WAITS[bar.wait];
  const length = duration(bar.to - bar.from);
  return bar.about && bar.wait === "person" ? t("waitAbout", { about: bar.about, length }) : `${known ? t(known) : bar.wait} · ${length}`;
}

function Track({ bars, axis, role }: { bars: Bar[]; axis: Axis; role: string }) {
  const waits = bars.filter((each) => each.kind === "wait");
  return (
    <span className="track">
      {axis.cuts.map((cut) => (
        <span key={cut.from} className="track-cut" title={t("cut", { length: duration(cut.ms) })} style={{ insetInlineStart: `${cut.from}%`, width: `${cut.to - cut.from}%` }} />
      ))}
      {bars.map((bar) => {
        const from = axis.place(bar.from);
        const title = bar.kind === "wait" ? waitText(bar) : t("attempt", { number: bar.attempt, length: duration(bar.to - bar.from) });
        return (
          <span key={`${bar.kind} ${bar.from} ${bar.attempt}`} className={`track-bar ${bar.kind} role-${role}`} title={title}
            style={{ insetInlineStart: `${Math.min(from, 99.4)}%`, width: `${Math.max(0.6, axis.place(bar.to) - from)}%` }} />
        );
      })}
      {waits.length > 0 ? <span className="away">{waits.map(waitText).join(", ")}</span> : null}
    </span>
  );
}

function shownAs(state: string): Shown {
  return state === "later" ? { word: t("later"), role: "queued", icon: "circle" } : visitWord(state);
}

function spanOf(visit: Visit, now: number): number {
  return (visit.endedAt ? new Date(visit.endedAt).getTime() : now) - new Date(visit.startedAt).getTime();
}
