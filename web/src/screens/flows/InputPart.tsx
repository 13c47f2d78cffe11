import { useState } from "react";
import { FormFields } from "@/components/FormFields";
import { sectionsForm } from "@/models/form";
import { type InputField, reviewInput } from "@/models/schemaForm";
import { t } from "./text";
import { type Input, JSON_FIELD } from "./useInput";

type InputProps = {
  input: Input;
  fields: readonly InputField[];
  errors: Record<string, string>;
  onEdit: (field: string) => void;
};

export function InputPart({ input, fields, errors, onEdit }: InputProps) {
  const [refused, setRefused] = useState("");
  const own = Object.fromEntries(Object.entries(errors).filter(([name]) => fields.some((each) => each.field === name)));
  // In the JSON view there are no fields to show errors at.
  const wrong = refused || errors[JSON_FIELD] || (input.isJson ? Object.values(own).join(" ") : "");
  return (
    <section className="panel flow-part" aria-label={t("input")}>
      <div className="flow-line">
        <h2>{t("input")}</h2>
        {fields.length > 0 ? (
          <button
            type="button"
            className="button quiet flow-start"
            onClick={() => setRefused(input.toggle())}
          >
            {input.isJson ? t("asFields") : t("asJson")}
          </button>
        ) : null}
      </div>
      {input.isJson ? (
        <JsonView
          text={input.text}
          help={fields.length === 0 ? t("anyObject") : ""}
          error={wrong}
          onChange={(text) => {
            setRefused("");
            onEdit(JSON_FIELD);
            input.setText(text);
          }}
        />
      ) : (
        <FormFields
          form={sectionsForm(fields.map((each) => each.section.raw))}
          values={input.values}
          review={reviewInput(fields, input.values)}
          errors={own}
          onChange={(name, value) => {
            onEdit(name);
            input.setField(name, value);
          }}
        />
      )}
    </section>
  );
}

function JsonView({ text, help, error, onChange }: { text: string; help: string; error: string; onChange: (text: string) => void }) {
  const notes = [help ? "input-help" : "", error ? "input-error" : ""].filter(Boolean).join(" ");
  return (
    <div className="field json-field" data-field={JSON_FIELD}>
      <label className="field-label" htmlFor="input-json">
        {t("json")}
      </label>
      <textarea
        id="input-json"
        className="code"
        rows={Math.min(24, Math.max(8, text.split("\n").length + 1))}
        spellCheck={false}
        aria-invalid={error !== "" || undefined}
        aria-describedby={notes || undefined}
        value={text}
        onChange={(event) => onChange(event.target.value)}
      />
      {help ? (
        <p id="input-help" className="muted small">
          {help}
        </p>
      ) : null}
      {error ? (
        <p id="input-error" className="field-error small">
          {error}
        </p>
      ) : null}
    </div>
  );
}
