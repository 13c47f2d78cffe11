/** The state that a fork starts with, edited as fields or as JSON, and what that changes. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useMemo, useRef, useState } from "react";
import { FormFields } from "@/components/FormFields";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { sectionsForm } from "@/models/form";
import { writeJson } from "@/models/json";
import { editedWith, faultsOf, inputFields, reviewInput, valuesFrom } from "@/models/schemaForm";
import { changesBetween, schemaFor } from "@/models/state";
import { type Patch, objectIn, patchOf } from "@/models/tree";
import { valueText } from "@/models/values";
import { getStateAt } from "@/services/runHistory";
import { t } from "./text";

/** `patch` null: what is written is no state. `errors`: what the last attempt was told, by field. */
type Edited = { patch: Patch | null; errors: Faults; onEdit: (patch: Patch | null, faults: Faults) => void };
type EditorProps = Edited & { run: string; record: number };
export type Faults = Record<string, string>;
type State = Record<string, unknown>;

export function StateEditor({ run, record, ...edited }: EditorProps) {
  const [open, setOpen] = useState(false);
  const state = useQuery({ queryKey: ["state", run, `record ${record}`], queryFn: () => getStateAt(run, String(record)), enabled: open, staleTime: Number.POSITIVE_INFINITY, retry: false });
  if (!open) {
    return <button type="button" className="button" onClick={() => setOpen(true)}>{t("editState")}</button>;
  }
  if (state.isPending) return <Skeleton rows={2} />;
  if (isLost(state)) return <Problem error={state.error} onRetry={() => void state.refetch()} />;
  return <Editor record={record} before={stateOf(state.data.state)} {...edited} />;
}

function stateOf(value: unknown): State {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as State) : {};
}

const MOST_FIELDS = 200;
type OpenProps = Edited & { record: number; before: State };

function Editor({ record, before, patch, errors, onEdit }: OpenProps) {
  const [next, setNext] = useState(before);
  const section = useRef<HTMLElement>(null);
  // The button that opened it has gone.
  useEffect(() => section.current?.querySelector<HTMLElement>("input, select, textarea")?.focus(), []);
  const names = Object.keys(next).length;
  const isLarge = names > MOST_FIELDS;
  const [text, setText] = useState<string | null>(() => (isLarge ? writeJson(before, 2) : null));
  const isJson = text !== null;
  const take = (found: State | null, faults: Faults = {}) => {
    if (found !== null) setNext(found);
    onEdit(found === null ? null : patchOf(before, found), faults);
  };
  const changes = changesBetween(before, next);
  return (
    <section ref={section} className="state-editor" aria-label={t("stateAsFields", { number: record })}>
      <div className="run-line">
        <strong>{t("stateAsFields", { number: record })}</strong>
        <button type="button" className="button quiet" disabled={patch === null || (isJson && isLarge)} onClick={() => setText(isJson ? null : writeJson(next, 2))}>{isJson ? t("asFields") : t("asJson")}</button>
      </div>
      {isLarge ? <p className="muted small">{t("manyNames", { count: names })}</p> : null}
      {isJson ? (
        <>
          <label htmlFor="fork-state" className="away">{t("stateAsJson", { number: record })}</label>
          <textarea id="fork-state" className="code" rows={10} spellCheck={false} value={text} aria-invalid={patch === null} aria-describedby="fork-state-said"
            onChange={(event) => { setText(event.target.value); take(objectIn(event.target.value)); }} />
        </>
      ) : <StateFields state={next} errors={errors} onChange={take} />}
      <div id="fork-state-said" aria-live="polite">
        {patch === null ? <p className="late">{t("noJson")}</p> : null}
        {patch && patch.removed.length > 0 ? <p className="late">{t("noRemoval", { keys: patch.removed.join(", ") })}</p> : null}
        {changes.slice(0, MOST_FIELDS).map((each) => (
          <p key={each.path} className="small">
            <span className="code">{each.path}</span> {each.kind === "added" ? null : <del>{valueText(each.before).slice(0, 200)}</del>} {each.kind === "removed" ? null : <ins>{valueText(each.after).slice(0, 200)}</ins>}
          </p>
        ))}
        {changes.length > MOST_FIELDS ? <p className="muted small">{t("moreChanges", { count: changes.length - MOST_FIELDS })}</p> : null}
      </div>
    </section>
  );
}

/** The fields are those of the state as it is when they are shown. */
function StateFields({ state, errors, onChange }: { state: State; errors: Faults; onChange: (state: State, faults: Faults) => void }) {
  const [first] = useState(state);
  const fields = useMemo(() => inputFields(schemaFor(first), first), [first]);
  const [values, setValues] = useState(() => valuesFrom(fields, first));
  const change = (field: string, value: unknown) => {
    const next = { ...values, [field]: value };
    setValues(next);
    onChange(editedWith(fields, next, first), faultsOf(fields, next, valuesFrom(fields, first)));
  };
  return <FormFields form={sectionsForm(fields.map((each) => each.section.raw))} values={values} review={reviewInput(fields, values)} errors={errors} onChange={change} />;
}
