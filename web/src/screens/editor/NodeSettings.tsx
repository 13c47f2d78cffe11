/** The settings of a node: the fields of its type, from the schema of documents. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { isLost } from "@/components/isLost";
import { Problem as ErrorNotice } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import type { Selection } from "@/models/canvasSelection";
import type { CanvasView } from "@/models/canvasView";
import { configFields } from "@/models/configSchema";
import { type FlowNode, changeNode, nodesOf, idProblem, renameNode, setInConfig, without } from "@/models/documentData";
import { PARENTS } from "@/models/nodeTypes";
import { renamedPorts } from "@/models/renamed";
import { type Problem, getFlowSchema } from "@/services/documents";
import { ConfigFieldView } from "./ConfigFieldView";
import { Connections } from "./Connections";
import { Labelled } from "./Labelled";
import { FieldProblems } from "./Problems";
import { t } from "./text";
import { Toggle } from "./Toggle";
import type { EditedText } from "./useText";

export type SettingsProps = { edited: EditedText; view: CanvasView; problems: Problem[]; isEditable: boolean; onSelect: (selection: Selection) => void; onRemove: (selection: Selection) => void };

export function NodeSettings({ node, edited, view, problems, isEditable, onSelect, onRemove }: SettingsProps & { node: FlowNode }) {
  const schema = useQuery({ queryKey: ["documents", "schema"], queryFn: getFlowSchema, staleTime: Number.POSITIVE_INFINITY });
  if (schema.isPending) return <Skeleton rows={4} />;
  if (isLost(schema)) return <ErrorNotice error={schema.error} onRetry={() => void schema.refetch()} />;
  const found = configFields(schema.data, node.type);
  const known = [...found.own, ...found.common];
  const rest = problems.filter((each) => !known.some((field) => field.name === fieldOf(each)));
  const set = (key: string, value: unknown, tag: string) => edited.change((old) => renamedPorts(old, setInConfig(old, node.id, key, value), node.id), `${node.id}.${tag}`);
  const field = (each: (typeof known)[number]) => (
    <ConfigFieldView key={each.name} field={each} value={node.config[each.name]} problems={problems.filter((problem) => fieldOf(problem) === each.name)} onChange={(value) => set(each.name, value, each.name)} />
  );
  return (
    <fieldset className="settings" disabled={!isEditable}>
      <legend className="away">{t("node")}</legend>
      <p className="muted small">{found.summary}</p>
      <FieldProblems problems={rest} id={`${node.id}-problems`} />
      <Identity node={node} edited={edited} onSelect={onSelect} />
      {node.type === "start" || node.type === "end" ? null : (
        <Toggle label={t("breakpoint")} help={t("breakpointHelp")} isOn={node.config["breakpoint"] === true} onChange={(isOn) => set("breakpoint", isOn || undefined, "breakpoint")} />
      )}
      {found.own.map(field)}
      <Connections node={node} edited={edited} view={view} onSelect={onSelect} />
      <details open={problems.some((problem) => found.common.some((each) => each.name === fieldOf(problem))) || undefined}>
        <summary>{t("more")}</summary>
        <div className="settings-more">
          <Toggle label={t("disabled")} help={t("disabledHelp")} isOn={node.isDisabled} onChange={(isOn) => edited.change((old) => changeNode(old, node.id, (given) => without({ ...given, disabled: isOn || undefined })))} />
          <Labelled label={t("inside")} id={`${node.id}-parent`}>
            <select id={`${node.id}-parent`} value={node.parent} onChange={(event) => edited.change((old) => changeNode(old, node.id, (given) => without({ ...given, parent: event.target.value || undefined, position: { x: 24, y: 56 } })))}>
              <option value="">{t("nowhere")}</option>
              {nodesOf(edited.data).filter((each) => PARENTS.has(each.type) && each.id !== node.id).map((each) => <option key={each.id}>{each.id}</option>)}
            </select>
          </Labelled>
          {found.common.map(field)}
        </div>
      </details>
      <button type="button" className="button danger" onClick={() => onRemove({ nodes: [node.id], edges: [] })}>{t("removeNode")}</button>
    </fieldset>
  );
}

function fieldOf(problem: Problem): string {
  return /^\w+/.exec(problem.field)?.[0] ?? "";
}

/** The id is changed when the field is left: edges follow it. */
function Identity({ node, edited, onSelect }: { node: FlowNode; edited: EditedText; onSelect: (selection: Selection) => void }) {
  // What was typed belongs to the id that it was typed over.
  const [typed, setTyped] = useState({ over: node.id, id: node.id, why: "" });
  const { id, why } = typed.over === node.id ? typed : { id: node.id, why: "" };
  const others = nodesOf(edited.data).map((each) => each.id);
  const rename = () => {
    if (id === node.id) return setTyped({ over: id, id, why: "" });
    const wrong = idProblem(id, others);
    if (wrong !== "") return setTyped({ over: node.id, id, why: t(wrong, { id }) });
    edited.change((old) => renameNode(old, node.id, id));
    onSelect({ nodes: [id], edges: [] });
  };
  return (
    <div className="pair-even">
      <Labelled label={t("label")} id={`${node.id}-label`}>
        <input id={`${node.id}-label`} value={node.label} placeholder={node.id} onChange={(event) => edited.change((old) => changeNode(old, node.id, (given) => without({ ...given, label: event.target.value || undefined })), `${node.id}.label`)} />
      </Labelled>
      <Labelled label={t("id")} id={`${node.id}-id`}>
        <input id={`${node.id}-id`} className="code" autoComplete="off" value={id} aria-invalid={why !== "" || undefined} aria-describedby={`${node.id}-id-problem`} onChange={(event) => setTyped({ over: node.id, id: event.target.value, why: "" })} onBlur={rename} onKeyDown={(event) => event.key === "Enter" && rename()} />
        <p id={`${node.id}-id-problem`} className="field-error small" role="alert">{why}</p>
      </Labelled>
    </div>
  );
}
