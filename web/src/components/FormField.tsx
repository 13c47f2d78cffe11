/** One field of a form: its control, what was proposed, how sure the machine is, and what is wrong. */
import { useId } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { INSTRUCTIONS, type Section } from "@/models/form";
import { cellError } from "./cellError";
import { FieldControl, type Upload, isGroup } from "./FieldControl";
import { FieldVersions } from "./FieldVersions";
import { Markdown } from "./LazyMarkdown";

const t = textOf(messages);

export type FieldProps = {
  section: Section;
  value: unknown;
  error: string;
  required: boolean;
  readonly: boolean;
  onUpload?: Upload | undefined;
  onChange: (value: unknown) => void;
};

export function FormField({ section, value, error, required, readonly, onUpload, onChange }: FieldProps) {
  const id = useId();
  const label = section.field === INSTRUCTIONS ? t("instructions") : section.label;
  // What an author has written says more than the kind.
  const help = section.field === INSTRUCTIONS ? t("instructionsHelp") : section.help || hintOf(section, readonly);
  const notes = [help ? `${id}-help` : "", error ? `${id}-error` : ""].filter(Boolean).join(" ");
  const control = (
    <FieldControl
      id={id}
      section={section}
      value={value}
      notes={notes}
      error={error}
      required={required}
      readonly={readonly}
      onUpload={onUpload}
      onChange={onChange}
    />
  );
  const name = (
    <>
      {label}
      {section.currency ? ` (${section.currency})` : ""}
      {required ? <span className="muted small"> {t("required")}</span> : null}
      {section.confidence === null ? null : <>{" "}<Confidence share={section.confidence} /></>}
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
          {readonly ? <p className="field-label">{name}</p> : <label className="field-label" htmlFor={id}>{name}</label>}
          {control}
        </>
      )}
      {help ? (
        <p id={`${id}-help`} className="muted small">
          {help}
        </p>
      ) : null}
      {section.kind === "markdown" && typeof value === "string" && value.trim() && !readonly ? (
        <details className="markdown-preview">
          <summary className="small">{t("previewMarkdown")}</summary>
          <Markdown text={value} />
        </details>
      ) : null}
      {readonly ? null : <FieldVersions section={section} value={value} onChange={onChange} />}
      {error ? (
        <p id={`${id}-error`} className="field-error small">
          {cellError(section, error)}
        </p>
      ) : null}
    </div>
  );
}

const UNSURE = 70;

const HINTS = { duration: "hintDuration", percent: "hintPercent", json: "hintJson", "secret-reference": "hintSecret" } as const;

function hintOf(section: Section, readonly: boolean): string {
  return !readonly && Object.hasOwn(HINTS, section.kind) ? t(HINTS[section.kind as keyof typeof HINTS]) : "";
}

function Confidence({ share }: { share: number }) {
  const percent = Math.round(share * 100);
  return (
    <span className={percent < UNSURE ? "confidence unsure small" : "confidence small"}>
      <meter min={0} max={100} value={percent} aria-hidden="true" />
      {percent < UNSURE ? t("unsure", { percent }) : t("confidence", { percent })}
    </span>
  );
}
