/** A form: its fields in the author's order, with a summary of what is wrong on top. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { type Form, type Values, isReadonly, isRequired, isVisible } from "@/models/form";
import { FormField } from "./FormField";
import { Markdown } from "./Markdown";
import { Value } from "./Value";
import "./form.css";

const t = textOf(messages);

type FormProps = {
  form: Form;
  asked: { values: Values; decision: string | null; context: unknown };
  errors: Record<string, string>;
  onChange: (field: string, value: unknown) => void;
};

export function FormFields({ form, asked, errors, onChange }: FormProps) {
  const count = Object.keys(errors).length;
  return (
    <div className="fields">
      {count > 0 ? (
        <p className="conflict" role="alert">
          {t("summary", { count })}
        </p>
      ) : null}
      {form.sections.filter((each) => isVisible(each, asked)).map((section, place) =>
        section.type === "context" ? (
          <section key={place} className="form-context">
            {section.title ? <h3>{section.title}</h3> : null}
            {typeof section.content === "string" ? <Markdown text={section.content} /> : <Value value={section.content} />}
          </section>
        ) : (
          <FormField
            key={section.field}
            section={section}
            value={asked.values[section.field]}
            error={errors[section.field] ?? ""}
            required={isRequired(section, asked)}
            readonly={isReadonly(section, asked)}
            onChange={(value) => onChange(section.field, value)}
          />
        ),
      )}
    </div>
  );
}
