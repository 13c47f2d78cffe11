/** What is wrong, on top of the form: each line leads to its field. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import type { Section } from "@/models/form";
import { cellError } from "./cellError";

const t = textOf(messages);

export function FormSummary({ errors, sections }: { errors: Record<string, string>; sections: readonly Section[] }) {
  const wrong = Object.entries(errors);
  if (wrong.length === 0) return null;
  const known = new Map(sections.map((each) => [each.field, each]));
  return (
    <div className="conflict form-summary" role="alert">
      <p>{t("summary", { count: wrong.length })}</p>
      <ul>
        {wrong.map(([field, message]) => (
          <li key={field}>
            <SummaryItem section={known.get(field)} message={message} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function SummaryItem({ section, message }: { section: Section | undefined; message: string }) {
  if (section === undefined) return message;
  const inCell = cellError(section, message);
  return (
    <button type="button" className="link" onClick={() => focusField(section.field)}>
      {inCell === message ? t("summaryItem", { label: section.label, message }) : inCell}
    </button>
  );
}

export function focusField(field: string | undefined): void {
  if (field === undefined) return;
  const found = document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  (found?.querySelector<HTMLElement>("[aria-invalid=true]") ?? found?.querySelector<HTMLElement>("input, select, textarea, button"))?.focus();
}
