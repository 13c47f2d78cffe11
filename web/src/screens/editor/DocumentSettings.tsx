import { textIn, without } from "@/models/documentData";
import type { Problem } from "@/services/documents";
import { Labelled } from "./Labelled";
import { FieldProblems } from "./Problems";
import { t } from "./text";
import type { EditedText } from "./useText";
import { YamlField } from "./YamlField";

const PARTS = [["input", "inputSchema"], ["variables", "variables"], ["config", "config"], ["notes", "notes"], ["groups", "groups"]] as const;

/** What belongs to no node. */
export function DocumentSettings({ edited, problems, isEditable }: { edited: EditedText; problems: Problem[]; isEditable: boolean }) {
  const { data, change } = edited;
  const set = (key: string, value: unknown) => change((old) => without({ ...old, [key]: value }), `document.${key}`);
  const of = (key: string) => problems.filter((each) => !each.node && !each.edge && (each.path === `/${key}` || each.path.startsWith(`/${key}/`)));
  return (
    <fieldset className="settings" disabled={!isEditable}>
      <legend className="away">{t("document")}</legend>
      <p className="muted small">{t("documentHelp")}</p>
      <Labelled label={t("description")} id="document-description">
        <textarea id="document-description" rows={2} value={textIn(data, "description")} onChange={(event) => set("description", event.target.value || undefined)} />
      </Labelled>
      {PARTS.map(([key, label]) => (
        <Labelled key={key} label={t(label)} id={`document-${key}`}>
          <YamlField id={`document-${key}`} value={data[key]} onChange={(value) => set(key, value)} />
          <FieldProblems problems={of(key)} id={`document-${key}-problems`} />
        </Labelled>
      ))}
    </fieldset>
  );
}
