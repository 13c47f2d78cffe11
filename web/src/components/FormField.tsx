/** One field of a form: its control, what was proposed, how sure the machine is, and what is wrong. */
import { useId } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { INSTRUCTIONS, type Section, isEdited } from "@/models/form";
import { FieldControl, isGroup } from "./FieldControl";
import { valueText } from "@/models/values";

const t = textOf(messages);

export type FieldProps = {
  section: Section;
  value: unknown;
  error: string;
  required: boolean;
  readonly: boolean;
  onChange: (value: unknown) => void;
};

export function FormField({ section, value, error, required, readonly, onChange }: FieldProps) {
  const id = useId();
  const label = section.field === INSTRUCTIONS ? t("instructions") : section.label;
  const notes = [section.help ? `${id}-help` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  const control = (
    <FieldControl
      id={id}
      section={section}
      value={value}
      notes={notes}
      invalid={error !== ""}
      required={required}
      readonly={readonly}
      onChange={onChange}
    />
  );
  const name = (
    <>
      {label}
      {section.currency ? ` (${section.currency})` : ""}
      {required ? <span className="muted small"> {t("required")}</span> : null}
      {section.confidence === null ? null : <Confidence share={section.confidence} />}
    </>
  );
  return (
    <div className="field" data-field={section.field}>
      {isGroup(section.kind) ? (
        <fieldset aria-describedby={notes || undefined}>
          <legend className="field-label">{name}</legend>
          {control}
        </fieldset>
      ) : (
        <>
          <label className="field-label" htmlFor={id}>
            {name}
          </label>
          {control}
        </>
      )}
      {section.help ? (
        <p id={`${id}-help`} className="muted small">
          {section.help}
        </p>
      ) : null}
      {isEdited(section, value) && !readonly ? (
        <p className="was small">
          {t("was", { value: valueText(section.proposal) })}{" "}
          <button type="button" className="link" onClick={() => onChange(section.proposal)}>
            {t("revert")}
          </button>
        </p>
      ) : null}
      {error ? (
        <p id={`${id}-error`} className="field-error small">
          {error}
        </p>
      ) : null}
    </div>
  );
}

function Confidence({ share }: { share: number }) {
  const percent = Math.round(share <= 1 ? share * 100 : share);
  return (
    <span className="confidence small">
      <meter min={0} max={100} value={percent} aria-hidden="true" />
      {t("confidence", { percent })}
    </span>
  );
}
