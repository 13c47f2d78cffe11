/** A form as its reader will see it, while its author writes it: <FormPreview sections={...} sample={...} />.
 *
 * `sections`: as in the document (`sections:` of a node), finished or not. `sample`: the variables of a run, for
 * `{{placeholders}}`. It can be filled in and shows its errors; it sends nothing. Give it a `key` to begin anew. */
import { useMemo, useState } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { firstValues, reviewOf, sectionsForm } from "@/models/form";
import { decisionsIn, filled } from "@/models/formSample";
import { FormFields } from "./FormFields";

const t = textOf(messages);

type PreviewProps = { sections: readonly unknown[]; sample: Readonly<Record<string, unknown>> };

export function FormPreview({ sections, sample }: PreviewProps) {
  const [typed, setTyped] = useState<Record<string, unknown>>({});
  const [decision, setDecision] = useState<string | null>(null);
  const [errors, setErrors] = useState<Record<string, string>>({});
  const shown = useMemo(() => sections.map((each) => filled(each, sample)), [sections, sample]);
  const form = useMemo(() => sectionsForm(shown), [shown]);
  const values = firstValues(form, typed);
  const review = reviewOf(form, { values, decision, context: sample });
  return (
    <form className="form-preview" noValidate aria-label={t("preview")} onSubmit={(event) => event.preventDefault()}>
      <FormFields
        form={form}
        values={values}
        review={review}
        errors={errors}
        onChange={(field, value) => {
          setTyped((old) => ({ ...old, [field]: value }));
          setErrors((old) => Object.fromEntries(Object.entries(old).filter(([name]) => name !== field)));
        }}
      />
      <div className="decision-row">
        {decisionsIn(shown, t("submit")).map((option) => (
          <button
            key={option.id}
            type="button"
            className={`button ${option.variant === "primary" || option.variant === "danger" ? option.variant : ""}`}
            aria-pressed={decision === option.id}
            onClick={() => {
              setDecision(option.id);
              setErrors(reviewOf(form, { values, decision: option.id, context: sample }).errors);
            }}
          >
            {option.label}
          </button>
        ))}
      </div>
    </form>
  );
}
