/** Cancel or retry of the runs that are chosen: first what would happen to each, then the result of each. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useKeys } from "@/app/useKeys";
import { Problem } from "@/components/Problem";
import { StatusBadge } from "@/components/StatusBadge";
import { useAction } from "@/components/useAction";
import { useNow } from "@/components/useNow";
import { useOffline } from "@/live/useLive";
import { withShortTimes } from "@/models/time";
import { type BulkAction, type BulkChange, MOST_BULK, type Run, changeMany } from "@/services/runs";
import { runWord, word } from "@/words";
import { t } from "./text";

const WORDS = { cancel: "cancelRun", retry: "retryRun", discard: "discard" } as const;

const TEXTS = {
  preview: { cancel: "wouldCancel", retry: "wouldRetry", discard: "wouldDiscard" },
  done: { cancel: "haveCancelled", retry: "haveRetried", discard: "haveDiscarded" },
} as const;

/** `onLeave`: with the runs that stay chosen. */
export function BulkRuns({ runs, onLeave }: { runs: Run[]; onLeave: (left: string[]) => void }) {
  const client = useQueryClient();
  const [action, setAction] = useState<BulkAction | null>(null);
  const ids = runs.map((each) => each.id);
  const asking = useMutation({ mutationFn: (chosen: BulkAction) => changeMany(ids, chosen, true) });
  const acting = useAction({
    mutationFn: (which: { action: BulkAction; runs: string[] }) => changeMany(which.runs, which.action, false, t("cancelReason")),
    onSettled: () => client.invalidateQueries({ queryKey: ["runs"] }),
  });
  const back = () => {
    setAction(null);
    asking.reset();
    acting.reset();
  };
  const close = () => (action ? back() : onLeave([]));
  useKeys([{ keys: "Escape", group: t("title"), label: t("clearSelection"), run: close }]);
  const able = asking.data?.filter((each) => each.done).map((each) => each.run) ?? [];
  const shown = acting.data ?? asking.data;
  return (
    <section className="bulk-runs panel" aria-label={t("selection")}>
      <div className="run-line">
        <strong>{t("selected", { count: runs.length })}</strong>
        {action === null ? <Choices runs={runs} onChoose={(next) => { setAction(next); asking.mutate(next); }} /> : null}
        <button type="button" className="button quiet" onClick={() => onLeave([])}>{t("clearSelection")}</button>
      </div>
      {runs.length > MOST_BULK ? <p className="late small">{t("tooManyRuns", { most: MOST_BULK })}</p> : null}
      {asking.isError ? <Problem error={asking.error} onRetry={() => action && asking.mutate(action)} /> : null}
      {acting.isError ? <Problem error={acting.error} /> : null}
      {shown && action ? <Results runs={runs} items={shown} action={action} done={acting.data !== undefined} /> : null}
      {action && asking.data && !acting.data ? (
        <div className="dialog-buttons">
          <button type="button" className="button" onClick={back}>{t("keepRun")}</button>
          <button type="button" className={`button ${action === "retry" ? "primary" : "danger"}`} disabled={able.length === 0 || acting.isOff} onClick={() => acting.mutate({ action, runs: able })}>
            {t("confirmRuns", { action: word(WORDS[action]), count: able.length })}
          </button>
        </div>
      ) : null}
    </section>
  );
}

function Choices({ runs, onChoose }: { runs: Run[]; onChoose: (action: BulkAction) => void }) {
  const [first, second] = runs;
  const isOff = useOffline() || runs.length > MOST_BULK;
  return (
    <span className="run-line">
      <button type="button" className="button danger" disabled={isOff} onClick={() => onChoose("cancel")}>{word("cancelRun")}</button>
      <button type="button" className="button" disabled={isOff} onClick={() => onChoose("retry")}>{word("retryRun")}</button>
      {runs.some((each) => each.dead) ? (
        <button type="button" className="button danger" disabled={isOff} onClick={() => onChoose("discard")}>{word("discard")}</button>
      ) : null}
      {first && second && runs.length === 2 ? (
        <Link to="/runs/$run" params={{ run: first.id }} search={{ tab: "compare", to: second.id }} className="button">{word("compare")}</Link>
      ) : null}
    </span>
  );
}

function Results({ runs, items, action, done }: { runs: Run[]; items: BulkChange[]; action: BulkAction; done: boolean }) {
  const now = new Date(useNow());
  const flows = new Map(runs.map((each) => [each.id, each.flow]));
  const count = items.filter((each) => each.done).length;
  const texts = TEXTS[done ? "done" : "preview"];
  const dead = items.filter((each) => each.done && each.dead).length;
  return (
    <>
      <p><output>{t(texts[action], { count, left: items.length - count })}</output></p>
      {dead > 0 && !done && action !== "discard" ? <p className="small">{t("deadAmong", { count: dead })}</p> : null}
      <ul className="bulk-results small">
        {items.slice(0, 100).map((each) => (
          <li key={each.run}>
            <Link to="/runs/$run" params={{ run: each.run }}>{flows.get(each.run)} <span className="code">{each.run.slice(0, 8)}</span></Link>
            {each.done ? <StatusBadge shown={runWord(each.status)} /> : <span className="late">{withShortTimes(each.why, now)}</span>}
            {each.texts.length > 0 ? <span className="muted">{withShortTimes(each.texts.join(" "), now)}</span> : null}
          </li>
        ))}
      </ul>
    </>
  );
}
