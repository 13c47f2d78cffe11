/** The graph, drawn with React Flow. Every drag has a key or a field in the panel that does the same. */
import { Background, type Connection, Controls, type Edge, type NodeChange, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type DragEvent, useMemo, useRef, useState } from "react";
import { useTheme } from "@/app/theme";
import type { CanvasView } from "@/models/canvasView";
import { OUT, type Point } from "@/models/documentData";
import { type DrawnNode, FlowNodeView } from "./FlowNodeView";
import { t } from "./text";

export const DRAGGED = "application/x-holdfast-node";
export type Selection = { nodes: string[]; edges: string[] };
export const NOTHING: Selection = { nodes: [], edges: [] };
export type Marks = { states: ReadonlyMap<string, string>; problems: ReadonlyMap<string, number>; edgeProblems: ReadonlySet<string> };
export type CanvasProps = {
  name: string;
  view: CanvasView;
  marks: Marks;
  selection: Selection;
  onSelect: (selection: Selection) => void;
  /** Without these the graph cannot be changed. */
  edit?: {
    move: (places: Map<string, Point>) => void;
    connect: (source: string, port: string, target: string) => void;
    remove: (selection: Selection) => void;
    drop: (type: string, at: Point) => void;
  };
};

const TYPES = { flow: FlowNodeView };
/** What React Flow has measured, and where a node is while it is dragged. */
type Live = ReadonlyMap<string, { measured?: { width: number; height: number } | undefined; position?: Point | undefined }>;

export function Canvas({ name, view, marks, selection, onSelect, edit }: CanvasProps) {
  const [live, setLive] = useState<Live>(new Map());
  const flow = useRef<ReactFlowInstance<DrawnNode, Edge> | null>(null);
  const { scheme } = useTheme();
  const nodes = useMemo(() => drawnNodes(view, marks, selection, live), [view, marks, selection, live]);
  const edges = useMemo(() => drawnEdges(view, marks, selection), [view, marks, selection]);

  const onNodesChange = (changes: NodeChange<DrawnNode>[]) => {
    setLive((old) => changedLive(old, changes));
    const places = new Map(changes.flatMap((each) => (each.type === "position" && each.position && each.dragging === false ? [[each.id, each.position] as const] : [])));
    const changed = new Map([...places].filter(([id, at]) => isElsewhere(view, id, at)));
    if (edit && changed.size > 0) edit.move(changed);
    const chosen = changes.filter((each) => each.type === "select");
    if (chosen.length > 0) {
      const now = new Set(selection.nodes);
      for (const each of chosen) now[each.selected ? "add" : "delete"](each.id);
      onSelect({ nodes: [...now], edges: now.size > 0 ? [] : selection.edges });
    }
  };
  const onConnect = ({ source, sourceHandle, target }: Connection) => edit?.connect(source, sourceHandle ?? OUT, target);
  const onDrop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED);
    if (!type || !edit || !flow.current) return;
    event.preventDefault();
    edit.drop(type, flow.current.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
  };
  return (
    <section className="canvas" aria-label={t("graph", { name })}>
      <ReactFlow
        onDragOver={(event) => event.preventDefault()}
        onDrop={onDrop}
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        colorMode={scheme}
        onInit={(instance) => {
          flow.current = instance;
        }}
        onNodesChange={onNodesChange}
        onEdgesChange={(changes) => {
          const chosen = changes.find((each) => each.type === "select" && each.selected);
          if (chosen && "id" in chosen) onSelect({ nodes: [], edges: [chosen.id] });
        }}
        onPaneClick={() => onSelect({ nodes: [], edges: [] })}
        onConnect={onConnect}
        onBeforeDelete={async (gone) => {
          edit?.remove({ nodes: gone.nodes.map((each) => each.id), edges: gone.edges.map((each) => each.id) });
          return false;
        }}
        nodesDraggable={edit !== undefined}
        nodesConnectable={edit !== undefined}
        deleteKeyCode={edit ? ["Delete", "Backspace"] : null}
        minZoom={0.1}
        maxZoom={2}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.15 }}
        proOptions={{ hideAttribution: true }}
        ariaLabelConfig={LABELS}
        snapToGrid
        snapGrid={[8, 8]}
      >
        <Background gap={24} size={1} />
        <Controls showInteractive={false} />
      </ReactFlow>
    </section>
  );
}

const LABELS = {
  "node.a11yDescription.default": t("nodeKeys"),
  "node.a11yDescription.keyboardDisabled": t("nodeKeys"),
  "node.a11yDescription.ariaLiveMessage": ({ x, y }: { x: number; y: number }) => t("moved", { x: Math.round(x), y: Math.round(y) }),
  "edge.a11yDescription.default": t("edgeKeys"),
  "controls.ariaLabel": t("view"),
  "controls.zoomIn.ariaLabel": t("zoomIn"),
  "controls.zoomOut.ariaLabel": t("zoomOut"),
  "controls.fitView.ariaLabel": t("fitView"),
};

function isElsewhere(view: CanvasView, id: string, at: Point): boolean {
  const old = view.nodes.find((each) => each.id === id)?.position;
  return old === undefined || Math.round(old.x) !== Math.round(at.x) || Math.round(old.y) !== Math.round(at.y);
}

function changedLive(old: Live, changes: NodeChange<DrawnNode>[]): Live {
  const next = new Map(old);
  for (const each of changes) {
    if (each.type === "dimensions" && each.dimensions) next.set(each.id, { ...next.get(each.id), measured: each.dimensions });
    if (each.type === "position") next.set(each.id, { measured: next.get(each.id)?.measured, position: each.dragging === true ? each.position : undefined });
  }
  return next;
}

function drawnNodes(view: CanvasView, marks: Marks, selection: Selection, live: Live): DrawnNode[] {
  return view.nodes.map((each) => {
    const now = live.get(each.id);
    return {
      ...(now?.measured ? { measured: now.measured } : {}),
      id: each.id,
      type: "flow" as const,
      position: now?.position ?? each.position,
      selected: selection.nodes.includes(each.id),
      data: { node: each, state: marks.states.get(each.id) ?? "", problems: marks.problems.get(each.id) ?? 0 },
      ...(each.parent ? { parentId: each.parent } : {}),
      ...(each.size ? { width: each.size.width, height: each.size.height } : {}),
      ariaLabel: t("nodeAt", { name: each.label, type: each.type.replaceAll("_", " "), state: marks.states.get(each.id) ?? "none", problems: marks.problems.get(each.id) ?? 0 }),
    };
  });
}

function drawnEdges(view: CanvasView, marks: Marks, selection: Selection): Edge[] {
  const isTaken = (source: string, target: string) => marks.states.has(source) && marks.states.has(target);
  return view.edges.map((each) => ({
    id: each.id,
    source: each.source,
    sourceHandle: each.port,
    target: each.target,
    label: each.label,
    selected: selection.edges.includes(each.id),
    className: [each.isFailure ? "failure" : "", marks.edgeProblems.has(each.id) ? "wrong" : "", isTaken(each.source, each.target) ? "taken" : ""].filter(Boolean).join(" "),
    ariaLabel: `${each.source} → ${each.target}${each.label ? ` (${each.label})` : ""}`,
    labelBgPadding: [6, 3] as [number, number],
    labelBgBorderRadius: 4,
  }));
}
