/** What changed in the question since it was read. What was typed stays. */
import { Moment } from "@/components/Moment";
import { type ContentChange, contentChanges } from "@/models/typed";
import { labelOf, plainText, valueText } from "@/models/values";
import type { Hold } from "@/services/holds";
import { priorityWord } from "@/words";
import { t } from "./text";

type ChangedProps = { before: Hold; after: Hold; onSeen: () => void };

export function Changed({ before, after, onSeen }: ChangedProps) {
  const changes = contentChanges(before, after);
  if (changes.length === 0) return null;
  return (
    <section className="conflict changed" role="alert" aria-label={t("changed")}>
      <p><strong>{t("changed")}</strong></p>
      <dl className="facts">
        {changes.map((each) => (
          <div key={`${each.what} ${each.path}`}>
            <dt>{nameOf(each)}</dt>
            <dd>
              <Side change={each} value={each.after} /> <span className="was small">{t("before")} <Side change={each} value={each.before} /></span>
            </dd>
          </div>
        ))}
      </dl>
      <button type="button" className="button" onClick={onSeen}>{t("seen")}</button>
    </section>
  );
}

const NAMES = {
  title: "changedTitle",
  prompt: "changedPrompt",
  assignee: "changedAssignee",
  priority: "changedPriority",
  expiresAt: "changedDeadline",
  options: "changedOptions",
} as const;

function nameOf(change: ContentChange): string {
  return change.what === "context" ? labelOf(change.path) : t(NAMES[change.what]);
}

function Side({ change, value }: { change: ContentChange; value: unknown }) {
  if (change.what === "expiresAt" && typeof value === "string") return <Moment at={value} />;
  if (change.what === "priority") return priorityWord(String(value)).word;
  return plainText(valueText(value || null));
}
