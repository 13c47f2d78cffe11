import { type ReactNode, useRef } from "react";
import { Boundary } from "@/components/Boundary";
import { useKeepFocus } from "@/components/useKeepFocus";
import type { Selection } from "@/models/canvasSelection";
import type { CanvasView } from "@/models/canvasView";
import { edgesOf, nodesOf } from "@/models/documentData";
import type { Problem } from "@/services/documents";
import { DocumentSettings } from "./DocumentSettings";
import { EdgeSettings } from "./EdgeSettings";
import { FormBuilder } from "./FormBuilder";
import { LiveRuns } from "./LiveRuns";
import { NodeSettings } from "./NodeSettings";
import { Problems } from "./Problems";
import { t } from "./text";
import type { EditedText } from "./useText";

export type Part = "node" | "form" | "problems" | "runs";
export type PanelProps = {
  part: Part;
  onPart: (part: Part) => void;
  edited: EditedText;
  view: CanvasView;
  selection: Selection;
  onSelect: (selection: Selection) => void;
  onRemove: (selection: Selection) => void;
  problems: Problem[];
  isEditable: boolean;
  flow: string;
  run: string;
};

export function Panel({ part, onPart, edited, view, selection, onSelect, onRemove, problems, isEditable, flow, run }: PanelProps) {
  const nodes = nodesOf(edited.data);
  const place = nodes.findIndex((each) => each.id === selection.nodes[0]);
  const node = nodes[place];
  const edge = node ? undefined : edgesOf(edited.data).find((each) => each.name === selection.edges[0]);
  const hasForm = node?.type === "hitl_review";
  const shown = part === "form" && !hasForm ? "node" : part;
  const panel = useRef<HTMLElement>(null);
  const keep = useKeepFocus(() => panel.current?.querySelector<HTMLElement>("[aria-selected=true]"));
  const of = { edited, view, isEditable, onSelect, onRemove };
  const tab = (name: Part, text: ReactNode) => (
    <button type="button" role="tab" id={`part-${name}`} aria-selected={shown === name} aria-controls="editor-part" onClick={() => onPart(name)}>{text}</button>
  );
  return (
    <aside ref={panel} className="editor-panel" aria-label={t("parts")} data-part="panel" {...keep}>
      <div className="tabs" role="tablist" aria-label={t("parts")}>
        {tab("node", node ? t("node") : edge ? t("edge") : t("document"))}
        {hasForm ? tab("form", t("form")) : null}
        {tab("problems", <>{t("problems")} {problems.length > 0 ? <span className="tab-count">{problems.length}</span> : null}</>)}
        {tab("runs", t("liveRuns"))}
      </div>
      <div id="editor-part" role="tabpanel" aria-labelledby={`part-${shown}`} className="editor-part">
        <Boundary resetKey={`${shown}${node?.id ?? edge?.name ?? ""}`}>
          {shown === "node" && node ? <NodeSettings key={place} node={node} problems={problems.filter((each) => each.node === node.id)} {...of} /> : null}
          {shown === "node" && edge ? <EdgeSettings key={edge.name} edge={edge} problems={problems.filter((each) => each.edge === edge.name)} {...of} /> : null}
          {shown === "node" && !node && !edge ? <DocumentSettings edited={edited} problems={problems} isEditable={isEditable} /> : null}
          {shown === "form" && node ? <FormBuilder key={node.id} node={node} edited={edited} problems={problems.filter((each) => each.node === node.id)} isEditable={isEditable} /> : null}
          {shown === "problems" ? <Problems problems={problems} onSelect={onSelect} /> : null}
          {shown === "runs" ? <LiveRuns flow={flow} shown={run} /> : null}
        </Boundary>
      </div>
    </aside>
  );
}
