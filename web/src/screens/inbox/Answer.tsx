/** The form and the decision bar of an open hold. */
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { FormFields } from "@/components/FormFields";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { type Armed, arm, leaning, stillArmed } from "@/models/decision";
import { APPROVE, type Form, type Values, commentFor, editedFields, reviewOf } from "@/models/form";
import { type Failure, failureOf } from "@/services/client";
import { type Hold, type Option, attach, place } from "@/services/holds";
import { Conflict } from "./Conflict";
import { DecisionBar } from "./DecisionBar";
import { faultsOf, focusField } from "./faults";
import { t } from "./text";
import type { Decided } from "./UndoBar";
import { useArmedKeys } from "./useArmedKeys";
import { useDraft } from "./useDraft";
import { focusTitle } from "./useInboxKeys";

type AnswerProps = {
  hold: Hold;
  form: Form;
  values: Values;
  comment: string;
  unsaved: boolean;
  /** Stands beside the fields, above the decisions. */
  beside: ReactNode;
  onTyped: (field: string, value: unknown) => void;
  onComment: (text: string) => void;
  onSaved: () => void;
  /** What becomes of it may be known before the reply, or without one. */
  onSending: () => void;
  onPlaced: (placed: Decided) => void;
  onStale: () => void;
};

/** The question whose button was pressed last: a double click on it must not press that of the next one. */
let pressed = "";
const DOUBLE_CLICK = 700;

/** Whether the question has just come up in place of one that was decided by a click. */
function useJustShown(hold: string): boolean {
  const [isJust, setJust] = useState(() => pressed !== "" && pressed !== hold);
  useEffect(() => {
    pressed = "";
    if (!isJust) return undefined;
    const timer = setTimeout(() => setJust(false), DOUBLE_CLICK);
    return () => clearTimeout(timer);
  }, [isJust]);
  return isJust;
}

const SUBMIT: Option = { id: "submit", label: "", variant: "primary", requiresComment: false };

export function Answer({ hold, form, values, comment, unsaved, beside, onTyped, onComment, onSaved, onSending, onPlaced, onStale }: AnswerProps) {
  const changed = form.kind === "arguments" ? editedFields(form, values).length : 0;
  const options = (hold.options.length > 0 ? hold.options : [SUBMIT]).map((each) => (changed > 0 && each.id === APPROVE ? { ...each, label: t("withChanges", { label: each.label, count: changed }) } : each));
  const shown = { hold: hold.id, version: hold.version, options: options.map((each) => each.id) };
  const [held, setArmed] = useState<Armed>(null);
  const [errors, setErrors] = useState<Record<string, string>>({});
  // Made when the form opens: sent twice, it decides once.
  const [key, setKey] = useState(newKey);
  const queries = useQueryClient();
  const armed = stillArmed(held, shown);
  const leant = leaning(held, shown);
  const isOffline = useOffline();
  const isJustShown = useJustShown(hold.id);
  const asked = { values, decision: leant, context: hold.context };
  const review = reviewOf(form, asked);
  const saved = useDraft(hold.id, { decision: null, values, comment }, unsaved, onSaved);
  const sending = useAction({
    mutationFn: (option: Option) => {
      const decided = { values, decision: option.id, context: hold.context };
      return place(hold, { decision: option.id, data: reviewOf(form, decided).data, comment: commentFor(form, decided, comment) }, key);
    },
    onSuccess: (done, option) => {
      saved.forget();
      // An undone decision comes back with what was typed, also where this form was not left in between.
      queries.setQueryData(["draft", hold.id], { decision: null, values, comment });
      onPlaced({ hold: done, label: option.label || t("submit") });
    },
    onError: (error) => {
      const failure = failureOf(error);
      setArmed(null);
      // Another attempt is another decision, unless nobody knows what became of this one.
      if (failure.kind !== "offline") setKey(newKey());
      if (failure.kind === "conflict" || failure.kind === "changed") onStale();
      if (failure.kind === "invalid") show(faultsOf(form, failure));
    },
  });

  function show(found: Record<string, string>): void {
    setErrors(found);
    const first = Object.keys(found).find(Boolean);
    if (first !== undefined) requestAnimationFrame(() => focusField(first));
  }

  function change(field: string, value: unknown): void {
    onTyped(field, value);
    setErrors((old) => Object.fromEntries(Object.entries(old).filter(([name]) => name !== field)));
  }

  function choose(option: Option, byKey: boolean): void {
    const decided = { values, decision: option.id, context: hold.context };
    const reveals = [...reviewOf(form, decided).visible].some((each) => !review.visible.has(each));
    const needsStep = byKey || option.variant === "danger" || (option.requiresComment && !comment.trim()) || reveals;
    if (armed?.option !== option.id && needsStep) {
      setArmed({ hold: hold.id, version: hold.version, option: option.id });
      setErrors({});
      return;
    }
    confirm(option);
  }

  function armByKey(index: number): void {
    setArmed(arm(shown, index + 1));
    // What the option cannot be without is typed next.
    if (options[index]?.requiresComment && !comment.trim()) requestAnimationFrame(() => focusField("comment"));
  }

  /** Out of the comment too: the letters are keys again. */
  function back(): void {
    setArmed(null);
    if (document.activeElement?.closest("form.answer")) focusTitle();
  }

  function confirm(option: Option): void {
    if (sending.isPending || isOffline) return;
    const found = { ...reviewOf(form, { values, decision: option.id, context: hold.context }).errors };
    if (option.requiresComment && !comment.trim()) found["comment"] = t("commentNeeded");
    if (Object.keys(found).length > 0) return show(found);
    setErrors({});
    onSending();
    sending.mutate(option);
  }

  const chosen = options.find((each) => each.id === armed?.option) ?? null;
  const leantAt = options.findIndex((each) => each.id === leant);
  const meant = leantAt >= 0 ? leantAt : Math.max(0, options.findIndex((each) => each.variant === "primary"));
  useKeys([
    ...options.slice(0, 9).map((option, index) => ({
      keys: String(index + 1),
      group: t("decide"),
      label: option.label || t("submit"),
      run: () => armByKey(index),
    })),
    // In a field of another form it sends that form: a comment is no decision.
    { keys: "Mod+Enter", group: t("decide"), label: t("keySend"), whileTyping: "form.answer", run: () => (chosen ? confirm(chosen) : armByKey(meant)) },
    ...(chosen ? [{ keys: "Enter", group: t("decide"), label: t("keyConfirm"), run: () => confirm(chosen) }] : []),
    ...(leant === null ? [] : [
      { keys: "Escape", group: t("decide"), label: t("keyDisarm"), whileTyping: "form.answer", run: back },
    ]),
  ]);
  useArmedKeys(chosen !== null, options.length, () => chosen && confirm(chosen), () => setArmed(null));

  const failure: Failure | null = sending.error ? failureOf(sending.error) : null;
  return (
    <form className="answer" noValidate onSubmit={(event) => event.preventDefault()}>
      {failure ? <Conflict hold={hold} failure={failure} /> : null}
      <div className={beside ? "approval" : undefined}>
        <FormFields form={form} values={values} review={review} errors={errors} onUpload={(field, file) => attach(hold.id, field, file)} onChange={change} />
        {beside}
      </div>
      <DecisionBar
        options={options}
        armed={armed?.option ?? null}
        leant={leant}
        comment={comment}
        commentError={errors["comment"] ?? ""}
        disabled={sending.isPending || isOffline || isJustShown}
        saved={saved.state}
        onComment={onComment}
        onChoose={(option) => choose(option, false)}
        onConfirm={confirm}
        onPress={() => {
          pressed = hold.id;
        }}
        onDisarm={() => setArmed(null)}
      />
    </form>
  );
}

function newKey(): string {
  return crypto.randomUUID();
}
