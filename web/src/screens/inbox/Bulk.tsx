/** One decision on many holds: shown before it is made, with a result for each. Failures stay selected. */
import { useMutation } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { useFocusBack } from "@/components/useFocusBack";
import { useNow } from "@/components/useNow";
import { useOffline } from "@/live/useLive";
import { commonOptions } from "@/models/selection";
import { reasonText } from "@/models/sentence";
import { type BulkResult, type Hold, MOST_BULK, type Option, decideMany } from "@/services/holds";
import { t } from "./text";
import type { Placed } from "./UndoBar";

/** The holds as they were when the preview was asked for: what changes since is left out. */
type Choice = { option: Option; holds: Hold[] };
type BulkProps = { holds: Hold[]; onClear: () => void; onDone: (left: string[], summary: string, placed: Placed | null) => void };

export function Bulk({ holds, onClear, onDone }: BulkProps) {
  const isOffline = useOffline();
  const [choice, setChoice] = useState<Choice | null>(null);
  const option = choice?.option ?? null;
  const [comment, setComment] = useState("");
  // The comment is typed after the preview, so a preview is not refused for want of one.
  const asking = useMutation({ mutationFn: (chosen: Choice) => decideMany(chosen.holds, chosen.option.id, chosen.option.requiresComment ? "-" : "", true) });
  const deciding = useAction({
    mutationFn: (chosen: Choice) => decideMany(chosen.holds, chosen.option.id, comment.trim(), false),
    onSuccess: (result, chosen) => {
      const left = result.items.filter((each) => !each.done).map((each) => each.hold);
      const placed = result.items.filter((each) => each.done && each.until !== null);
      const until = placed.map((each) => each.until!).toSorted()[0] ?? null;
      const said = t(until === null ? "haveDecided" : "haveChosen", { count: result.done, label: chosen.option.label, left: left.length });
      const label = t("manyPlaced", { label: chosen.option.label, count: placed.length });
      onDone(left, said, until === null ? null : { ids: placed.map((each) => each.hold), until, label });
    },
  });
  const choose = (chosen: Option) => {
    const next = { option: chosen, holds };
    setChoice(next);
    asking.mutate(next);
  };
  const back = () => {
    setChoice(null);
    asking.reset();
    deciding.reset();
  };
  useFocusBack(focusRow);
  useKeys([{ keys: "Escape", group: t("select"), label: t("clear"), run: option ? back : onClear }]);
  if (holds.length > MOST_BULK) return <Bar count={holds.length} onClear={onClear}><p className="small late">{t("tooMany", { most: MOST_BULK })}</p></Bar>;
  if (deciding.data && option) {
    return <Bar count={holds.length} onClear={onClear}><Result holds={holds} label={option.label} result={deciding.data} preview={false} /></Bar>;
  }
  if (choice === null || option === null) {
    const options = commonOptions(holds.map((each) => each.options));
    return (
      <Bar count={holds.length} onClear={onClear}>
        {options.length === 0 ? <p className="small muted">{t("nothingCommon")}</p> : null}
        <div className="bulk-row">
          {options.map((each) => (
            <button key={each.id} type="button" className="button" disabled={isOffline} onClick={() => choose(each)}>
              {each.label}
            </button>
          ))}
        </div>
      </Bar>
    );
  }
  const mayDecide = asking.data !== undefined && asking.data.done > 0 && (!option.requiresComment || comment.trim() !== "") && !deciding.isPending && !isOffline;
  return (
    <Bar count={holds.length} onClear={onClear} onSubmit={() => mayDecide && deciding.mutate(choice)}>
      {asking.isError ? <Problem error={asking.error} onRetry={() => asking.mutate(choice)} /> : null}
      {deciding.isError ? <Problem error={deciding.error} /> : null}
      {asking.data ? <Result holds={holds} label={option.label} result={asking.data} preview /> : null}
      <div className="field">
        <label className="field-label" htmlFor="bulk-comment">
          {t("comment")}
          {option.requiresComment ? <span className="muted small"> {t("required")}</span> : null}
        </label>
        <textarea id="bulk-comment" rows={2} value={comment} onChange={(event) => setComment(event.target.value)} />
      </div>
      <div className="bulk-row">
        <button type="submit" className={`button ${option.variant === "danger" ? "danger" : "primary"}`} disabled={!mayDecide}>
          {t("confirmMany", { label: option.label, count: asking.data?.done ?? 0 })}
        </button>
        <button type="button" className="button" onClick={back}>{t("cancel")}</button>
      </div>
    </Bar>
  );
}

function focusRow(): void {
  document.querySelector<HTMLElement>(".rows .row[tabindex='0']")?.focus();
}

type BarProps = { count: number; onClear: () => void; onSubmit?: () => void; children: React.ReactNode };

/** `onSubmit`: what is sent is shown; what the person typed or pressed last is gone, and the next field has the focus. */
function Bar({ count, onClear, onSubmit, children }: BarProps) {
  const bar = useRef<HTMLFormElement>(null);
  const isAsked = onSubmit !== undefined;
  const wasAsked = useRef(isAsked);
  useEffect(() => {
    if (wasAsked.current !== isAsked) bar.current?.querySelector<HTMLElement>(isAsked ? "textarea" : ".bulk-row + .bulk-row button, button")?.focus();
    wasAsked.current = isAsked;
  }, [isAsked]);
  return (
    <section className="bulk" aria-label={t("select")}>
      <form
        ref={bar}
        className="bulk-result"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <div className="bulk-row">
          <strong>{t("selected", { count })}</strong>
          <button type="button" className="button quiet" onClick={onClear}>{t("clear")}</button>
        </div>
        {children}
      </form>
    </section>
  );
}

type ResultProps = { holds: Hold[]; label: string; result: BulkResult; preview: boolean };

function Result({ holds, label, result, preview }: ResultProps) {
  const left = result.items.filter((each) => !each.done);
  const now = new Date(useNow());
  const asked = new Map(holds.map((each) => [each.id, each]));
  return (
    <div className="bulk-result">
      <p><output>{t(preview ? "wouldDecide" : result.items.some((each) => each.until) ? "haveChosen" : "haveDecided", { count: result.done, label, left: left.length })}</output></p>
      {left.length > 0 ? (
        <ul className="small">
          {left.slice(0, 20).map((each) => (
            <li key={each.hold}><strong>{asked.get(each.hold)?.title ?? each.hold}</strong>{": "}{each.isChanged ? t("changedMeanwhile") : reasonText(each.why, asked.get(each.hold) ?? { id: each.hold, options: [] }, t("thisQuestion"), now)}</li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}
