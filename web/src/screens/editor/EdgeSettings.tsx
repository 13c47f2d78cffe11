import { type FlowEdge, OUT, changeEdge } from "@/models/documentData";
import { Labelled } from "./Labelled";
import type { SettingsProps } from "./NodeSettings";
import { FieldProblems } from "./Problems";
import { t } from "./text";
import { Toggle } from "./Toggle";

export function EdgeSettings({ edge, edited, problems, isEditable, onRemove }: SettingsProps & { edge: FlowEdge }) {
  const set = (key: "when" | "label", value: string) => edited.change((old) => changeEdge(old, edge.name, (given) => ({ ...given, [key]: value || undefined })), `${edge.name}.${key}`);
  const isWrong = problems.some((each) => each.severity === "error");
  return (
    <fieldset className="settings" disabled={!isEditable}>
      <legend className="away">{t("edge")}</legend>
      <p><strong>{edge.source}</strong> <span className="muted">{edge.port}</span> → <strong>{edge.target}</strong></p>
      {edge.port === OUT || edge.when ? (
        <Labelled label={t("when")} id="edge-when" help={t("whenHelp")}>
          <input id="edge-when" className="code" autoComplete="off" spellCheck={false} value={edge.when} aria-invalid={isWrong || undefined} aria-describedby="edge-when-help edge-problems" onChange={(event) => set("when", event.target.value)} />
        </Labelled>
      ) : null}
      {(edge.port === OUT && edge.when === "") || edge.isOtherwise ? <Toggle label={t("otherwise")} help={t("otherwiseHelp")} isOn={edge.isOtherwise} onChange={(isOn) => edited.change((old) => changeEdge(old, edge.name, (given) => ({ ...given, otherwise: isOn || undefined })), `${edge.name}.otherwise`)} /> : null}
      <FieldProblems problems={problems} id="edge-problems" />
      <Labelled label={t("label")} id="edge-label">
        <input id="edge-label" value={edge.label} onChange={(event) => set("label", event.target.value)} />
      </Labelled>
      <button type="button" className="button danger" onClick={() => onRemove({ nodes: [], edges: [edge.name] })}>{t("removeThisEdge")}</button>
    </fieldset>
  );
}
