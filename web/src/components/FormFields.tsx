/** A form: its fields in the author's order, with a summary of what is wrong on top.
 *
 * `review`: how the form stands with these values. What is wrong with a field is shown once it was left, or once an
 * answer was tried. `errors`: what the last attempt was told, until the field is changed. */
import { useState } from "react";
import { type Form, type Standing, type Values, isEmpty } from "@/models/form";
import type { Upload } from "./FieldControl";
import { FormField } from "./FormField";
import { FormSummary } from "./FormSummary";
import { Markdown } from "./LazyMarkdown";
import { useLeft } from "./useLeft";
import { Value } from "./Value";
import "./form.css";

type FormProps = {
  form: Form;
  values: Values;
  review: Standing;
  errors: Record<string, string>;
  onUpload?: Upload | undefined;
  onChange: (field: string, value: unknown) => void;
};

export function FormFields({ form, values, review, errors, onUpload, onChange }: FormProps) {
  const { left, leave } = useLeft();
  const shown = form.sections.filter((each) => review.visible.has(each.field));
  // What another decision asks for besides is not wrong before the person has come to it.
  const [tried, setTried] = useState<{ errors: unknown; fields: ReadonlySet<string> }>({ errors, fields: new Set() });
  if (tried.errors !== errors) {
    const isAttempt = Object.keys(errors).length > Object.keys(tried.errors as object).length;
    setTried({ errors, fields: isAttempt ? new Set(shown.map((each) => each.field)) : tried.fields });
  }
  const errorOf = (field: string) => {
    const found = Object.hasOwn(errors, field) || !(tried.fields.has(field) || left.has(field)) ? errors : review.errors;
    // A field may be called `constructor`.
    return Object.hasOwn(found, field) ? found[field]! : "";
  };
  return (
    <div className="fields">
      <FormSummary errors={errors} sections={shown} />
      {shown.map((section, at) =>
        section.type === "context" ? (
          <section key={`${at} ${section.field}`} className="form-context">
            {section.title ? <h3>{section.title}</h3> : null}
            {typeof section.content === "string" ? <Markdown text={section.content} /> : <Value value={section.content} />}
            {section.help ? <p className="muted small">{section.help}</p> : null}
          </section>
        ) : (
          <div
            key={`${at} ${section.field}`}
            onBlur={(event) => {
              const isGone = !event.currentTarget.contains(event.relatedTarget);
              if (isGone && !isEmpty(values[section.field])) leave(section.field);
            }}
          >
            <FormField
              section={section}
              value={review.readonly.has(section.field) ? section.start : values[section.field]}
              error={errorOf(section.field)}
              required={review.required.has(section.field)}
              readonly={review.readonly.has(section.field)}
              onUpload={onUpload}
              onChange={(value) => onChange(section.field, value)}
            />
          </div>
        ),
      )}
    </div>
  );
}
