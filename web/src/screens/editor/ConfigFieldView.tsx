/** One field of a config, by its kind. An empty field is left out of the document. */
import { useId } from "react";
import type { ConfigField } from "@/models/configSchema";
import { isRecord, without } from "@/models/documentData";
import { labelOf } from "@/models/values";
import type { Problem } from "@/services/documents";
import { FieldProblems } from "./Problems";
import { RowsField } from "./RowsField";
import { t } from "./text";
import { YamlField } from "./YamlField";

type FieldProps = { field: ConfigField; value: unknown; problems: Problem[]; onChange: (value: unknown) => void };

export function ConfigFieldView({ field, value, problems, onChange }: FieldProps) {
  const id = useId();
  const notes = `${id}-notes`;
  const label = labelOf(field.name);
  const common = { id, "aria-describedby": notes, "aria-invalid": problems.some((each) => each.severity === "error") || undefined };
  const below = (
    <div id={notes}>
      {field.help ? <p className="muted small">{field.help}</p> : null}
      <FieldProblems problems={problems} id={`${id}-problems`} />
    </div>
  );
  if (field.kind === "group") return <Group field={field} value={value} problems={problems} onChange={onChange} />;
  if (field.kind === "rows") {
    return (
      <div className="field">
        <RowsField label={label} fields={field.fields} rows={Array.isArray(value) ? value : []} onChange={(rows) => onChange(rows.length > 0 || field.isRequired ? rows : undefined)} />
        {below}
      </div>
    );
  }
  if (field.kind === "boolean") {
    return (
      <div className="field">
        <label className="choice"><input type="checkbox" {...common} checked={value === true} onChange={(event) => onChange(event.target.checked || undefined)} />{label}</label>
        {below}
      </div>
    );
  }
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>{label}{field.isRequired ? <span className="muted small"> *</span> : null}</label>
      <Control field={field} value={value} common={common} onChange={onChange} />
      {below}
    </div>
  );
}

type ControlProps = { field: ConfigField; value: unknown; common: { id: string }; onChange: (value: unknown) => void };

function Control({ field, value, common, onChange }: ControlProps) {
  const text = typeof value === "string" || typeof value === "number" ? String(value) : "";
  const hint = typeof field.initial === "string" || typeof field.initial === "number" ? String(field.initial) : undefined;
  if (field.kind === "choice") {
    return (
      <select {...common} value={text} onChange={(event) => onChange(event.target.value || undefined)}>
        <option value="">{hint ?? t("unset")}</option>
        {field.choices.filter((each) => each !== hint).map((each) => <option key={each}>{each}</option>)}
      </select>
    );
  }
  if (field.kind === "number") {
    return <input {...common} inputMode="decimal" placeholder={hint} value={text} onChange={(event) => onChange(event.target.value === "" ? undefined : Number.isNaN(Number(event.target.value)) ? event.target.value : Number(event.target.value))} />;
  }
  if (field.kind === "lines") {
    const lines = Array.isArray(value) ? value.map(String).join("\n") : "";
    return <textarea {...common} rows={3} placeholder={t("perLine")} value={lines} onChange={(event) => onChange(event.target.value === "" ? undefined : event.target.value.split("\n"))} />;
  }
  if (field.kind === "yaml" || (value !== undefined && typeof value !== "string" && typeof value !== "number")) {
    return <YamlField {...common} value={value} onChange={onChange} />;
  }
  const given = (next: string) => onChange(next === "" && !field.isRequired ? undefined : next);
  if (field.kind === "long") return <textarea {...common} rows={4} value={text} onChange={(event) => given(event.target.value)} />;
  return <input {...common} autoComplete="off" placeholder={hint} value={text} onChange={(event) => given(event.target.value)} />;
}

function Group({ field, value, problems, onChange }: FieldProps) {
  const given = isRecord(value) ? value : {};
  return (
    <fieldset className="config-group">
      <legend className="field-label">{labelOf(field.name)}</legend>
      {field.fields.map((each) => (
        <ConfigFieldView key={each.name} field={each} value={given[each.name]} problems={[]} onChange={(next) => {
          const now = without({ ...given, [each.name]: next });
          onChange(Object.keys(now).length > 0 ? now : undefined);
        }} />
      ))}
      <FieldProblems problems={problems} id={`${field.name}-problems`} />
    </fieldset>
  );
}
