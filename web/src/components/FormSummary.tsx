/** What is wrong, on top of the form: each line leads to its field. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import type { Section } from "@/models/form";

const t = textOf(messages);

export function FormSummary({ errors, sections }: { errors: Record<string, string>; sections: readonly Section[] }) {
  const wrong = Object.entries(errors);
  if (wrong.length === 0) return null;
  const labels = new Map(sections.map((each) => [each.field, each.label]));
  return (
    <div className="conflict form-summary" role="alert">
      <p>{t("summary", { count: wrong.length })}</p>
      <ul>
        {wrong.map(([field, message]) => (
          <li key={field}>
            {labels.has(field) ? (
              <button type="button" className="link" onClick={() => focusField(field)}>
                {t("summaryItem", { label: labels.get(field)!, message })}
              </button>
            ) : message}
          </li>
        ))}
      </ul>
    </div>
  );
}

export function focusField(field: string | undefined): void {
  if (field === undefined) return;
  const found = document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  found?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();
}
