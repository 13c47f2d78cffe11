/** The slider over the records of a run. Graph, timeline, events, state and step show the one that it names. */
import { useKeys } from "@/app/useKeys";
import { Moment } from "@/components/Moment";
import type { Checkpoint } from "@/services/runs";
import { t } from "./text";
import type { ShownRecord } from "./useRecord";

export function RecordSlider({ all, record }: { all: Checkpoint[]; record: ShownRecord }) {
  const { place, go, current } = record;
  const last = all.length - 1;
  useKeys([
    { keys: "[", group: t("title"), label: t("keyBefore"), run: () => go(place - 1) },
    { keys: "]", group: t("title"), label: t("keyAfter"), run: () => go(place + 1) },
    { keys: "l", group: t("title"), label: t("keyLive"), run: () => go(last) },
  ]);
  if (current === undefined) return null;
  return (
    <div className="slider panel">
      <label htmlFor="record">{t("record", { number: current.seq, last: all[last]!.seq })}</label>
      <span className="slider-line">
        <button type="button" className="button" aria-label={t("keyBefore")} disabled={place === 0} onClick={() => go(place - 1)}>
          {"‹"}
        </button>
        <input id="record" type="range" min={0} max={last} value={place} aria-valuetext={t("at", { node: current.node || t("theStart"), number: current.seq })} onChange={(event) => go(Number(event.target.value))} />
        <button type="button" className="button" aria-label={t("keyAfter")} disabled={place === last} onClick={() => go(place + 1)}>
          {"›"}
        </button>
        <button type="button" className="button quiet" disabled={record.at === undefined} onClick={() => go(last)}>
          {t("latest")}
        </button>
      </span>
      <span className="muted small slider-place">
        {t("after", { node: current.node || t("theStart") })} <Moment at={current.at} />
      </span>
    </div>
  );
}
