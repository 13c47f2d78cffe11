/** What the axis left out, and where the run was resumed. */
import { Link } from "@tanstack/react-router";
import type { CSSProperties } from "react";
import { Moment } from "@/components/Moment";
import { duration } from "@/models/time";
import type { Axis, Mark } from "@/models/timeline";
import { t } from "./text";

export function TimelineScale({ axis, resumes }: { axis: Axis; resumes: readonly Mark[] }) {
  if (axis.cuts.length === 0 && resumes.length === 0) return null;
  return (
    <div className="lane lane-scale small muted">
      <span />
      <span className="scale-name">{resumes.length > 0 ? t("resumes", { count: resumes.length }) : t("pauses")}</span>
      <span className="scale">
        {axis.cuts.map((cut) => (
          <span key={cut.from} className="scale-cut" title={t("cut", { length: duration(cut.ms) })} style={placeOf((cut.from + cut.to) / 2)}>
            {duration(cut.ms)}
          </span>
        ))}
      </span>
      <span />
    </div>
  );
}

const MOST = 10;

/** Who started the run, and who resumed it and when, in words: the lines of the picture are thin. `first`: empty if it is not known. */
export function Workers({ first, resumes }: { first: string; resumes: readonly Mark[] }) {
  if (first === "" && resumes.length === 0) return null;
  return (
    <ul className="timeline-note resume-list small">
      {first === "" ? null : <li>{t("startedByWorker", { worker: first })}</li>}
      {resumes.slice(-MOST).map((mark) => (
        <li key={`${mark.seq} ${mark.at}`}>
          <Link to="." search={(old: object) => ({ ...old, at: mark.seq, step: undefined })} resetScroll={false}>{mark.worker ? t("resumedBy", { worker: mark.worker }) : t("resumed")}</Link>{", "}<Moment at={mark.at} seconds />
        </li>
      ))}
    </ul>
  );
}

/** Near the end of the line a length ends at its place: it would stand out of a narrow page. */
function placeOf(percent: number): CSSProperties {
  return percent > 70 ? { insetInlineEnd: `${100 - percent}%`, transform: "none" } : { insetInlineStart: `${percent}%` };
}
