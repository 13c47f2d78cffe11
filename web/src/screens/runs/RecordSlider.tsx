/** The slider over the records of a run. Graph, timeline, events, state and step show the one that it names. */
import { useRef } from "react";
import { useKeys } from "@/app/useKeys";
import { Moment } from "@/components/Moment";
import { useKeepFocus } from "@/components/useKeepFocus";
import { type JournalRecord, type Records, nextMark } from "@/models/records";
import type { Mark } from "@/models/timeline";
import { t } from "./text";
import type { ShownRecord } from "./useRecord";

type SliderProps = { records: Records; marks: readonly Mark[]; record: ShownRecord };

export function RecordSlider({ records, marks, record }: SliderProps) {
  const { number, go } = record;
  const { first, last } = records;
  const slider = useRef<HTMLInputElement>(null);
  // At either end buttons are off.
  const keep = useKeepFocus(() => slider.current);
  const step = (by: 1 | -1) => go(number + by);
  const jump = (by: 1 | -1) => {
    const found = nextMark(marks, number, by);
    if (found) go(found.seq);
  };
  useKeys([
    { keys: "[", group: t("title"), label: t("keyBefore"), run: () => step(-1) },
    { keys: "]", group: t("title"), label: t("keyAfter"), run: () => step(1) },
    { keys: "{", group: t("title"), label: t("keyMarkBefore"), run: () => jump(-1) },
    { keys: "}", group: t("title"), label: t("keyMarkAfter"), run: () => jump(1) },
    { keys: "l", group: t("title"), label: t("keyLive"), run: () => go(last) },
  ]);
  const place = placeText(record.record);
  const mark = marks.find((each) => each.seq === number);
  return (
    <div className="slider panel" {...keep}>
      <label htmlFor="record">{t("record", { number, last })}</label>
      <span className="slider-line">
        <SliderButton sign="«" label={t("keyMarkBefore")} off={nextMark(marks, number, -1) === null} onClick={() => jump(-1)} />
        <SliderButton sign="‹" label={t("keyBefore")} off={number <= first} onClick={() => step(-1)} />
        <input ref={slider} id="record" type="range" min={first} max={last} value={number} aria-valuetext={t("at", { place, number })} onChange={(event) => go(Number(event.target.value))} />
        <SliderButton sign="›" label={t("keyAfter")} off={number >= last} onClick={() => step(1)} />
        <SliderButton sign="»" label={t("keyMarkAfter")} off={nextMark(marks, number, 1) === null} onClick={() => jump(1)} />
        <button type="button" className="button quiet" disabled={record.at === undefined} onClick={() => go(last)}>
          {t("latest")}
        </button>
      </span>
      <span className="muted small slider-place">
        {place}{record.record ? <>{", "}<Moment at={record.record.at} seconds /></> : null}
        {mark ? ` · ${markText(mark)}` : ""}
      </span>
    </div>
  );
}

const PLACES: Record<string, "atCreated" | "atStep" | "atAttempt" | "atSubstep" | "atAsked" | "atChunk" | "atIntent" | "atSnapshot" | "atEnd"> = {
  created: "atCreated", step: "atStep", attempt: "atAttempt", substep: "atSubstep", asked: "atAsked", chunk: "atChunk", intent: "atIntent", snapshot: "atSnapshot", end: "atEnd",
};

function placeText(record: JournalRecord | null): string {
  if (record === null) return "";
  const known = PLACES[record.kind];
  return known ? t(known, { node: record.name || t("theRun"), attempt: record.attempt }) : [record.kind, record.name].filter(Boolean).join(" ");
}

function markText(mark: Mark): string {
  if (mark.kind === "resumed") return mark.worker ? t("resumedBy", { worker: mark.worker }) : t("resumed");
  return mark.kind === "failed" ? t("markFailed") : t("markDecided");
}

function SliderButton({ sign, label, off, onClick }: { sign: string; label: string; off: boolean; onClick: () => void }) {
  return (
    <button type="button" className="button" data-repeat="" aria-label={label} title={label} disabled={off} onClick={onClick}>
      {sign}
    </button>
  );
}
