/** The bars of one visit on the axis of the run. */
import { duration } from "@/models/time";
import type { Axis, Bar, Mark } from "@/models/timeline";
import { t } from "./text";

const WAITS: Record<string, "waitPerson" | "waitTime" | "waitRetry" | "waitPaused"> = { person: "waitPerson", at_breakpoint: "waitPaused", time: "waitTime", retry: "waitRetry" };
/** A bar that is wide enough has the name of its wait written on it. */
const WIDE = 22;

function waitText(bar: Bar): string {
  const known = WAITS[bar.wait];
  const length = duration(bar.to - bar.from);
  return bar.about && bar.wait === "person" ? t("waitAbout", { about: bar.about, length }) : `${known ? t(known) : bar.wait} · ${length}`;
}

/** `isAround`: what is inside works or waits; the visit itself only stands around it. */
type TrackProps = { bars: Bar[]; isAround: boolean; axis: Axis; role: string; resumes: readonly Mark[] };

export function Track({ bars, isAround, axis, role, resumes }: TrackProps) {
  const waits = bars.filter((each) => each.kind === "wait");
  return (
    <span className="track">
      {axis.cuts.map((cut) => (
        <span key={cut.from} className="track-cut" title={t("cut", { length: duration(cut.ms) })} style={{ insetInlineStart: `${cut.from}%`, width: `${cut.to - cut.from}%` }} />
      ))}
      {bars.map((bar) => {
        const from = axis.place(bar.from);
        const width = Math.max(0.6, axis.place(bar.to) - from);
        const title = bar.kind === "wait" ? waitText(bar) : t(isAround ? "around" : "attempt", { number: bar.attempt, length: duration(bar.to - bar.from) });
        return (
          <span key={`${bar.kind} ${bar.from} ${bar.attempt}`} className={`track-bar ${bar.kind} ${isAround ? "around" : ""} role-${role}`} title={title} style={{ insetInlineStart: `${Math.min(from, 99.4)}%`, width: `${width}%` }}>
            {bar.kind === "wait" && width > WIDE ? <span className="track-name" aria-hidden="true">{waitText(bar)}</span> : null}
          </span>
        );
      })}
      {resumes.map((mark) => (
        <span key={mark.seq} className="track-resume" title={mark.worker ? t("resumedBy", { worker: mark.worker }) : t("resumed")} style={{ insetInlineStart: `${axis.place(new Date(mark.at).getTime())}%` }} />
      ))}
      {waits.length > 0 ? <span className="away">{waits.map(waitText).join(", ")}</span> : null}
    </span>
  );
}
