/** The graph, drawn with React Flow. Every drag has a key or a field in the panel that does the same. */
import { Background, type Connection, Controls, type Edge, MarkerType, type NodeChange, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type DragEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "@/app/theme";
import { type Selection, withEdges, withNodes } from "@/models/canvasSelection";
import { type CanvasView, MOST_DRAWN } from "@/models/canvasView";
import { OUT, type Point } from "@/models/documentData";
import { type DrawnNode, FlowNodeView } from "./FlowNodeView";
import { t } from "./text";

export const DRAGGED = "application/x-holdfast-node";
export type Marks = { states: ReadonlyMap<string, string>; problems: ReadonlyMap<string, number>; errors: ReadonlySet<string>; edgeProblems: ReadonlySet<string> };
export type CanvasProps = {
  name: string;
  view: CanvasView;
  marks: Marks;
  selection: Selection;
  onSelect: (selection: Selection) => void;
  /** With another number the whole graph is brought into view. */
  fit?: number;
  /** Without these the graph cannot be changed. */
  edit?: {
    move: (places: Map<string, Point>) => void;
    connect: (source: string, port: string, target: string) => void;
    drop: (type: string, at: Point) => void;
  };
};

const TYPES = { flow: FlowNodeView };
const FIT = { maxZoom: 1, padding: 0.15 };
/** What React Flow has measured, and where a node is while it is dragged. */
type Live = ReadonlyMap<string, { measured?: { width: number; height: number } | undefined; position?: Point | undefined }>;

export function Canvas(props: CanvasProps) {
  const count = props.view.nodes.length;
  if (count > MOST_DRAWN) return <p className="editor-notice">{t("manyNodes", { count, most: MOST_DRAWN })}</p>;
  return <DrawnCanvas {...props} />;
}

function DrawnCanvas({ name, view, marks, selection, onSelect, fit = 0, edit }: CanvasProps) {
  const [live, setLive] = useState<Live>(new Map());
  const drawing = useRef<HTMLElement>(null);
  // React Flow's own drawings: what can be heard of them are nodes, edges and buttons.
  useEffect(() => drawing.current?.querySelectorAll("svg:not([role], [aria-hidden])").forEach((each) => each.setAttribute("role", "presentation")));
  const flow = useRef<ReactFlowInstance<DrawnNode, Edge> | null>(null);
  const { scheme } = useTheme();
  const nodes = useMemo(() => drawnNodes(view, marks, selection, live), [view, marks, selection, live]);
  const edges = useMemo(() => drawnEdges(view, marks, selection), [view, marks, selection]);

  // One click changes nodes and edges in two calls, the second before this is drawn again.
  const latest = useRef(selection);
  useEffect(() => {
    latest.current = selection;
  }, [selection]);
  const choose = (next: Selection) => {
    latest.current = next;
    onSelect(next);
  };
  useEffect(() => {
    if (fit === 0) return;
    const frame = requestAnimationFrame(() => void flow.current?.fitView(FIT));
    return () => cancelAnimationFrame(frame);
  }, [fit]);

  const onNodesChange = (changes: NodeChange<DrawnNode>[]) => {
    setLive((old) => changedLive(old, changes));
    const places = new Map(changes.flatMap((each) => (each.type === "position" && each.position && each.dragging === false ? [[each.id, each.position] as const] : [])));
    const changed = new Map([...places].filter(([id, at]) => isElsewhere(view, id, at)));
    if (edit && changed.size > 0) edit.move(changed);
    const chosen = changes.filter((each) => each.type === "select");
    if (chosen.length > 0) choose(withNodes(latest.current, chosen));
  };
  const onConnect = ({ source, sourceHandle, target }: Connection) => edit?.connect(source, sourceHandle ?? OUT, target);
  const onDrop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED);
    if (!type || !edit || !flow.current) return;
    event.preventDefault();
    edit.drop(type, flow.current.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
  };
  return (
    <section ref={drawing} className="canvas" aria-label={t("graph", { name })}>
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
          const chosen = changes.filter((each) => each.type === "select");
          if (chosen.length > 0) choose(withEdges(latest.current, chosen));
        }}
        onPaneClick={() => choose({ nodes: [], edges: [] })}
        onConnect={onConnect}
        nodesDraggable={edit !== undefined}
        nodesConnectable={edit !== undefined}
        deleteKeyCode={null}
        minZoom={0.1}
        maxZoom={2}
        fitView
        fitViewOptions={FIT}
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
  const selected = new Set(selection.nodes);
  return view.nodes.map((each) => {
    const now = live.get(each.id);
    return {
      ...(now?.measured ? { measured: now.measured } : {}),
      id: each.id,
      type: "flow" as const,
      position: now?.position ?? each.position,
      selected: selected.has(each.id),
      data: { node: each, state: marks.states.get(each.id) ?? "", problems: marks.problems.get(each.id) ?? 0, isWrong: marks.errors.has(each.id) },
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
    markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--control-border)" },
    selected: selection.edges.includes(each.id),
    className: [each.isFailure ? "failure" : "", marks.edgeProblems.has(each.id) ? "wrong" : "", isTaken(each.source, each.target) ? "taken" : ""].filter(Boolean).join(" "),
    ariaLabel: `${each.source} → ${each.target}${nameOfEdge(each)}`,
    labelBgPadding: [6, 3] as [number, number],
    labelBgBorderRadius: 4,
  }));
}

function nameOfEdge({ label, port }: CanvasView["edges"][number]): string {
  const name = label || (port === OUT ? "" : port);
  return name ? ` (${name})` : "";
}
