/** The form and the decision bar of an open hold. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { FormFields } from "@/components/FormFields";
import { useLiveState } from "@/live/useLive";
import { type Armed, arm, stillArmed } from "@/models/decision";
import { type Form, type Values, answerData, isVisible, missingFields } from "@/models/form";
import { errorsByField } from "@/models/typed";
import { type Failure, failureOf } from "@/services/client";
import { type Hold, type Option, place } from "@/services/holds";
import { Conflict } from "./Conflict";
import { DecisionBar } from "./DecisionBar";
import { t } from "./text";
import type { Placed } from "./UndoBar";
import { useDraft } from "./useDraft";

type AnswerProps = {
  hold: Hold;
  form: Form;
  values: Values;
  comment: string;
  unsaved: boolean;
  onTyped: (field: string, value: unknown) => void;
  onComment: (text: string) => void;
  onPlaced: (placed: Placed) => void;
  onStale: () => void;
};

const SUBMIT: Option = { id: "submit", label: "", variant: "primary", requiresComment: false };

export function Answer({ hold, form, values, comment, unsaved, onTyped, onComment, onPlaced, onStale }: AnswerProps) {
  const options = hold.options.length > 0 ? hold.options : [SUBMIT];
  const shown = { hold: hold.id, version: hold.version, options: options.map((each) => each.id) };
  const [held, setArmed] = useState<Armed>(null);
  const [errors, setErrors] = useState<Record<string, string>>({});
  // Made when the form opens: sent twice, it decides once.
  const [key, setKey] = useState(newKey);
  const queries = useQueryClient();
  const armed = stillArmed(held, shown);
  const isOffline = useLiveState() === "offline";
  const asked = { values, decision: armed?.option ?? null, context: hold.context };
  const saved = useDraft(hold.id, { decision: null, values, comment }, unsaved);
  const sending = useMutation({
    mutationFn: (option: Option) => {
      const decided = { values, decision: option.id, context: hold.context };
      return place(hold, { decision: option.id, data: answerData(form, decided), comment }, key);
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
    requestAnimationFrame(() => focusField(first));
  }

  function change(field: string, value: unknown): void {
    onTyped(field, value);
    setErrors((old) => Object.fromEntries(Object.entries(old).filter(([name]) => name !== field)));
  }

  function choose(option: Option, byKey: boolean): void {
    const decided = { values, decision: option.id, context: hold.context };
    const reveals = form.sections.some((each) => isVisible(each, decided) && !isVisible(each, asked));
    const needsStep = byKey || option.variant === "danger" || (option.requiresComment && !comment.trim()) || reveals;
    if (armed?.option !== option.id && needsStep) {
      setArmed({ hold: hold.id, version: hold.version, option: option.id });
      setErrors({});
      return;
    }
    confirm(option);
  }

  function confirm(option: Option): void {
    if (sending.isPending || isOffline) return;
    const missing = missingFields(form, { values, decision: option.id, context: hold.context });
    const found = Object.fromEntries(missing.map((each) => [each, t("fillIn")]));
    if (option.requiresComment && !comment.trim()) found["comment"] = t("commentNeeded");
    if (Object.keys(found).length > 0) return show(found);
    setErrors({});
    sending.mutate(option);
  }

  useKeys([
    ...options.slice(0, 9).map((option, index) => ({
      keys: String(index + 1),
      group: t("decide"),
      label: option.label || t("submit"),
      run: () => setArmed(arm(shown, index + 1)),
    })),
    ...(armed ? [
      { keys: "Enter", group: t("decide"), label: t("keyConfirm"), run: () => confirm(options.find((each) => each.id === armed.option)!) },
      { keys: "Mod+Enter", group: t("decide"), label: t("keyConfirm"), whileTyping: true, run: () => confirm(options.find((each) => each.id === armed.option)!) },
      { keys: "Escape", group: t("decide"), label: t("keyDisarm"), whileTyping: true, run: () => setArmed(null) },
    ] : []),
  ]);
  useEffect(() => {
    // Any other key disarms; typing into a field that the option asks for does not.
    const pressed = (event: KeyboardEvent) => {
      if (held && /^[a-z[\]/?]$/i.test(event.key) && !(event.target as HTMLElement).closest("form")) setArmed(null);
    };
    window.addEventListener("keydown", pressed, true);
    return () => window.removeEventListener("keydown", pressed, true);
  }, [held]);

  const failure: Failure | null = sending.error ? failureOf(sending.error) : null;
  return (
    <form className="answer" noValidate onSubmit={(event) => event.preventDefault()}>
      {failure ? <Conflict failure={failure} /> : null}
      <FormFields form={form} asked={asked} errors={errors} onChange={change} />
      <DecisionBar
        options={options}
        armed={armed?.option ?? null}
        comment={comment}
        commentError={errors["comment"] ?? ""}
        disabled={sending.isPending || isOffline}
        saved={saved.state}
        onComment={onComment}
        onChoose={(option) => choose(option, false)}
        onConfirm={confirm}
        onDisarm={() => setArmed(null)}
      />
    </form>
  );
}

/** Errors of the server at their fields; the one about a missing comment has no list. */
function faultsOf(form: Form, failure: Failure): Record<string, string> {
  const field = failure.facts["field"];
  if (failure.errors.length === 0 && typeof field === "string") return { [field]: failure.title };
  return errorsByField(form, failure.errors);
}

function newKey(): string {
  return crypto.randomUUID();
}

function focusField(field: string | undefined): void {
  if (field === undefined) return;
  const found = document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  found?.querySelector<HTMLElement>("input, select, textarea")?.focus();
}
