/** The edges that leave a node, by field and key: what a drag between ports does too. */
import { useId, useState } from "react";
import type { Selection } from "@/models/canvasSelection";
import { type CanvasView, freePort } from "@/models/canvasView";
import { type FlowNode, connect, edgesOf, nodesOf, removeParts } from "@/models/documentData";
import { t } from "./text";
import type { EditedText } from "./useText";

type ConnectionsProps = { node: FlowNode; edited: EditedText; view: CanvasView; onSelect: (selection: Selection) => void };

export function Connections({ node, edited, view, onSelect }: ConnectionsProps) {
  const id = useId();
  const ports = view.nodes.find((each) => each.id === node.id)?.ports ?? [];
  const [port, setPort] = useState("");
  const [target, setTarget] = useState("");
  const leaving = edgesOf(edited.data).filter((each) => each.source === node.id);
  const chosen = ports.includes(port) ? port : (freePort(ports, leaving.map((each) => each.port)) ?? ports[0] ?? "");
  const others = nodesOf(edited.data).filter((each) => each.id !== node.id && each.type !== "start");
  if (node.type === "end") return null;
  return (
    <fieldset className="rows-field">
      <legend className="field-label">{t("connections")}</legend>
      {leaving.length === 0 ? <p className="muted small">{t("noConnections")}</p> : null}
      <ul className="edge-list">
        {leaving.map((each) => (
          <li key={each.name}>
            <button type="button" className="link" onClick={() => onSelect({ nodes: [], edges: [each.name] })}>{`${each.port} → ${each.target}`}</button>
            {each.when ? <span className="code small muted">{each.when}</span> : null}
            {each.isOtherwise ? <span className="small muted">{t("otherwise")}</span> : null}
            <button type="button" className="button quiet" aria-label={t("removeEdge", { target: each.target })} onClick={() => edited.change((old) => removeParts(old, [], [each.name]))}>×</button>
          </li>
        ))}
      </ul>
      <div className="connect-row">
        <label htmlFor={`${id}-port`} className="away">{t("from")}</label>
        <select id={`${id}-port`} value={chosen} onChange={(event) => setPort(event.target.value)}>
          {ports.map((each) => <option key={each}>{each}</option>)}
        </select>
        <label htmlFor={`${id}-target`} className="away">{t("to")}</label>
        <select id={`${id}-target`} value={target} onChange={(event) => setTarget(event.target.value)}>
          <option value="">{t("choose")}</option>
          {others.map((each) => <option key={each.id}>{each.id}</option>)}
        </select>
        <button type="button" className="button" aria-disabled={target === ""} onClick={() => { if (target === "") return; edited.change((old) => connect(old, node.id, chosen, target)); setTarget(""); setPort(""); }}>{t("connect")}</button>
      </div>
    </fieldset>
  );
}
