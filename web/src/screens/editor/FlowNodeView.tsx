/** One node: its icon, its name and type, its state in the run that is shown, its problems and its ports. */
import { Handle, type Node, type NodeProps, Position, useUpdateNodeInternals } from "@xyflow/react";
import { useEffect } from "react";
import { Icon } from "@/components/Icon";
import { type CanvasNode, SIDE } from "@/models/canvasView";
import { OUT } from "@/models/documentData";
import { nodeType } from "@/models/nodeTypes";
import { visitWord } from "@/words";
import { t } from "./text";

export type DrawnNode = Node<{ node: CanvasNode; state: string; problems: number; isWrong: boolean; isTarget: boolean }, "flow">;

export function FlowNodeView({ id, data: { node, state, problems, isWrong, isTarget }, isConnectable }: NodeProps<DrawnNode>) {
  const moved = useUpdateNodeInternals();
  const ports = node.ports.join(" ");
  // Ports that come or go move the others, which React Flow measures only when it is told.
  useEffect(() => {
    if (ports !== "") moved(id);
  }, [moved, id, ports]);
  const type = nodeType(node.type);
  const shown = state ? visitWord(state) : null;
  const names = ["flow-node", `group-${type.group}`, shown ? `state role-${shown.role}` : "", isWrong ? "wrong" : "", node.isDisabled ? "disabled" : "", node.size ? "around" : "", isTarget ? "target" : ""];
  const main = node.ports.filter((each) => !SIDE.has(each));
  const side = node.ports.filter((each) => SIDE.has(each));
  return (
    <div className={names.filter(Boolean).join(" ")}>
      {node.type === "start" ? null : <Handle type="target" position={Position.Top} isConnectable={isConnectable} title={t("inPort")} />}
      <div className="flow-node-head">
        <span className="flow-node-icon" aria-hidden="true">
          <svg viewBox="0 0 16 16" width="16" height="16" className="icon">
            <path d={type.icon} />
          </svg>
        </span>
        <span className="flow-node-text">
          <strong>{node.label}</strong>
          <span title={shown?.word}>{shown ? shown.word : node.type.replaceAll("_", " ")}</span>
        </span>
        {shown ? <Icon name={shown.icon} /> : null}
        {node.isBreakpoint ? <span className="break-mark" title={t("breakpoint")} /> : null}
        {problems > 0 ? (
          <span className={isWrong ? "problem-mark" : "problem-mark warning"} title={t("problemCount", { count: problems })}>
            {problems}
          </span>
        ) : null}
      </div>
      <div className="ports">
        {main.map((each) => (
          <Port key={each} name={each} isConnectable={isConnectable} />
        ))}
      </div>
      <div className="side-ports">
        {side.map((each) => (
          <Port key={each} name={each} isConnectable={isConnectable} />
        ))}
      </div>
    </div>
  );
}

function Port({ name, isConnectable }: { name: string; isConnectable: boolean }) {
  return (
    <span className="port">
      <Handle type="source" id={name} position={SIDE.has(name) ? Position.Right : Position.Bottom} isConnectable={isConnectable} title={t("outPort", { port: name })} />
      {name === OUT ? null : <span className="port-name">{name}</span>}
    </span>
  );
}
