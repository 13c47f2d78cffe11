/** What a machine proposed, what was there before and what was typed, side by side. */
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { writeJson } from "@/models/json";
import { type Section, isEdited, isEmpty } from "@/models/form";
import { valueText } from "@/models/values";

const t = textOf(messages);
const LONG = 60;

type VersionsProps = { section: Section; value: unknown; onChange: (value: unknown) => void };

export function FieldVersions({ section, value, onChange }: VersionsProps) {
  const isChanged = isEdited(section, value);
  if (!isChanged && !section.hasPrevious) return null;
  const isBefore = section.hasPrevious && !isEdited({ ...section, proposal: section.previous }, value);
  const shown = [section.proposal, section.previous, value].map(shownText);
  const versions = [
    { name: t("proposed"), text: shown[0]!, isNow: !isChanged, use: section.proposal, word: t("revert") },
    ...(section.hasPrevious ? [{ name: t("previous"), text: shown[1]!, isNow: isBefore, use: section.previous, word: t("usePrevious") }] : []),
  ];
  const isLong = shown.some((text) => text.length > LONG || text.includes("\n"));
  if (!isLong) {
    return (
      <p className="was small">
        {versions.map((each) => (
          <span key={each.name} className="version">
            {section.hasPrevious ? t("version", { name: each.name, value: each.text }) : t("was", { value: each.text })}{" "}
            {each.isNow ? <span className="muted">{t("inUse")}</span> : <Use word={each.word} onUse={() => onChange(each.use)} />}
          </span>
        ))}
      </p>
    );
  }
  const columns = [...versions, ...(isChanged && !isBefore ? [{ name: t("edited"), text: shown[2]!, isNow: true, use: value, word: "" }] : [])];
  return (
    <div className="versions">
      {columns.map((each) => (
        <section key={each.name} aria-label={each.name}>
          <p className="version-name small">
            <strong>{each.name}</strong> {each.isNow ? <span className="muted">{t("inUse")}</span> : <Use word={each.word} onUse={() => onChange(each.use)} />}
          </p>
          <Lines text={each.text} others={columns.filter((other) => other !== each).map((other) => other.text)} />
        </section>
      ))}
    </div>
  );
}

function Use({ word, onUse }: { word: string; onUse: () => void }) {
  return <button type="button" className="link" onClick={onUse}>{word}</button>;
}

/** Lines that another version does not have are marked. */
function Lines({ text, others }: { text: string; others: string[] }) {
  const known = others.map((each) => new Set(each.split("\n")));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <pre className="version-text" tabIndex={0}>
      {text.split("\n").map((line, place) => {
        const isOwn = line.trim() !== "" && known.some((lines) => !lines.has(line));
        return isOwn ? <mark key={place}>{`${line}\n`}</mark> : <span key={place}>{`${line}\n`}</span>;
      })}
    </pre>
  );
}

function shownText(value: unknown): string {
  if (isEmpty(value)) return t("empty");
  return typeof value === "object" && value !== null && !("amount" in value) ? writeJson(value, 2) : valueText(value);
}
