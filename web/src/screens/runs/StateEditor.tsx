/** The state that a fork starts with, edited as JSON, and what that changes. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { changesBetween } from "@/models/state";
import { type Patch, objectIn, patchOf } from "@/models/tree";
import { valueText } from "@/models/values";
import { getStateAt } from "@/services/runs";
import { t } from "./text";

/** `patch` null: what is written is no state. */
type EditorProps = { run: string; record: number; patch: Patch | null; onPatch: (patch: Patch | null) => void };

export function StateEditor({ run, record, patch, onPatch }: EditorProps) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState<string | null>(null);
  const state = useQuery({ queryKey: ["state", run, `record ${record}`], queryFn: () => getStateAt(run, String(record)), enabled: open, staleTime: Number.POSITIVE_INFINITY });
  const edit = (next: string) => {
    setText(next);
    const found = objectIn(next);
    onPatch(found === null ? null : patchOf(state.data?.state, found));
  };
  if (!open) {
    return <button type="button" className="button" onClick={() => setOpen(true)}>{t("editState")}</button>;
  }
  if (state.isPending) return <Skeleton rows={2} />;
  if (state.isError) return <Problem error={state.error} onRetry={() => void state.refetch()} />;
  const shown = text ?? JSON.stringify(state.data.state, null, 2);
  const changes = changesBetween(state.data.state, objectIn(shown) ?? state.data.state);
  return (
    <section className="state-editor">
      <label htmlFor="fork-state">{t("stateAsJson", { number: record })}</label>
      <textarea id="fork-state" className="code" rows={10} spellCheck={false} value={shown} aria-invalid={patch === null} aria-describedby="fork-state-said" onChange={(event) => edit(event.target.value)} />
      <div id="fork-state-said" aria-live="polite">
        {patch === null ? <p className="late">{t("noJson")}</p> : null}
        {patch && patch.removed.length > 0 ? <p className="late">{t("noRemoval", { keys: patch.removed.join(", ") })}</p> : null}
        {changes.map((each) => (
          <p key={each.path} className="small">
            <span className="code">{each.path}</span> {each.kind === "added" ? null : <del>{valueText(each.before).slice(0, 200)}</del>} {each.kind === "removed" ? null : <ins>{valueText(each.after).slice(0, 200)}</ins>}
          </p>
        ))}
      </div>
    </section>
  );
}
