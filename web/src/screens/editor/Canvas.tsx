/** The graph, drawn with React Flow. Every drag has a key or a field in the panel that does the same. */
import { Background, type Connection, Controls, type Edge, type NodeChange, ReactFlow, type ReactFlowInstance } from "@xyflow/react";
import "@xyflow/react/dist/base.css";
import { type DragEvent, type FocusEvent, type KeyboardEvent, useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "@/app/theme";
import { useKeepFocus } from "@/components/useKeepFocus";
import { type Selection, withEdges, withNodes } from "@/models/canvasSelection";
import type { CanvasGroup, CanvasNote } from "@/models/canvasNotes";
import { type CanvasView, MOST_DRAWN, movedInto, placedNodes } from "@/models/canvasView";
import { OUT, type Point } from "@/models/documentData";
import { lanesOf } from "@/models/detour";
import { inReadingOrder, neighbour } from "@/models/neighbour";
import { GroupView, NoteView } from "./CanvasExtras";
import { type Drawn, type Live, type Marks, changedLive, drawnEdges, drawnExtras, drawnNodes, isElsewhere } from "./drawnGraph";
import { FlowNodeView } from "./FlowNodeView";
import { LaneEdge } from "./LaneEdge";
import { t } from "./text";

export const DRAGGED = "application/x-holdfast-node";
export type CanvasProps = {
  name: string;
  view: CanvasView;
  marks: Marks;
  selection: Selection;
  onSelect: (selection: Selection) => void;
  /** Of a document: drawn behind its nodes. */
  extras?: { notes: CanvasNote[]; groups: CanvasGroup[] };
  /** With another number the whole graph is brought into view. */
  fit?: number;
  /** Without these the graph cannot be changed. */
  edit?: {
    move: (places: Map<string, Point>) => void;
    connect: (source: string, port: string, target: string) => void;
    drop: (type: string, at: Point) => void;
  };
};

const TYPES = { flow: FlowNodeView, note: NoteView, group: GroupView };
const EDGES = { lane: LaneEdge };
const NO_EXTRAS = { notes: [], groups: [] };
/** Below, the buttons of the view cover nothing. */
const FIT = { maxZoom: 1, padding: { x: 0.15, top: 0.15, bottom: "64px" } } as const;

export function Canvas(props: CanvasProps) {
  const count = props.view.nodes.length;
  if (count > MOST_DRAWN) return <p className="editor-notice">{t("manyNodes", { count, most: MOST_DRAWN })}</p>;
  return <DrawnCanvas {...props} />;
}

function DrawnCanvas({ name, view, marks, selection, onSelect, fit = 0, extras = NO_EXTRAS, edit }: CanvasProps) {
  const [live, setLive] = useState<Live>(new Map());
  const drawing = useRef<HTMLElement>(null);
  // React Flow's own drawings: what can be heard of them are nodes, edges and buttons.
  useEffect(() => drawing.current?.querySelectorAll("svg:not([role], [aria-hidden])").forEach((each) => each.setAttribute("role", "presentation")));
  const flow = useRef<ReactFlowInstance<Drawn, Edge> | null>(null);
  const { scheme } = useTheme();
  const [focused, setFocused] = useState("");
  const [aimed, setAimed] = useState("");
  const [said, say] = useState("");
  const places = useMemo(() => placedNodes(view), [view]);
  // Tab comes to one node; arrows lead to the others.
  const reachable = [focused, selection.nodes[0], inReadingOrder(places)[0]?.id].find((id) => places.some((each) => each.id === id)) ?? "";
  const nodes = useMemo(() => [...drawnExtras(extras, live), ...drawnNodes(view, marks, selection, live, { reachable, aimed })], [extras, view, marks, selection, live, reachable, aimed]);
  const lanes = useMemo(() => lanesOf(view), [view]);
  const edges = useMemo(() => drawnEdges(view, marks, selection, lanes), [view, marks, selection, lanes]);

  // One click changes nodes and edges in two calls, the second before this is drawn again.
  const latest = useRef(selection);
  useEffect(() => {
    latest.current = selection;
  }, [selection]);
  const choose = (next: Selection) => {
    latest.current = next;
    onSelect(next);
  };
  // New nodes are measured first: React Flow leaves those out that it has not measured.
  const fitted = useRef(fit);
  const isMeasured = view.nodes.every((each) => live.get(each.id)?.measured);
  useEffect(() => {
    if (fit === fitted.current || !isMeasured) return;
    const frame = requestAnimationFrame(() => {
      fitted.current = fit;
      void flow.current?.fitView(FIT);
    });
    return () => cancelAnimationFrame(frame);
  }, [fit, isMeasured]);

  /** Where a map or loop would take in what is dragged. */
  const aim = (changes: NodeChange<Drawn>[]) => {
    const dragged = new Map(changes.flatMap((each) => (each.type === "position" && each.position && each.dragging ? [[each.id, each.position] as const] : [])));
    const [first] = movedInto(view, dragged).values();
    setAimed(first?.parent ?? "");
  };
  const reachableNode = () => drawing.current?.querySelector<HTMLElement>(".react-flow__node[tabindex='0']");
  const keep = useKeepFocus(reachableNode);
  /** React Flow takes the focus from a node with Escape, in the next frame. */
  const takeBack = (frames: number) => {
    if (frames > 0) requestAnimationFrame(() => takeBack(frames - 1));
    else if (document.activeElement === document.body) reachableNode()?.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>) => {
    if (event.key === "Escape") takeBack(2);
    const from = (event.target as Element).matches(".react-flow__node") ? (event.target as HTMLElement).dataset["id"] : undefined;
    // Arrows move a selected node.
    if (from === undefined || event.ctrlKey || event.metaKey || (edit && selection.nodes.includes(from))) return;
    const next = neighbour(places, from, event.key);
    if (next === null) return;
    event.preventDefault();
    event.stopPropagation();
    setFocused(next);
    event.currentTarget.querySelector<HTMLElement>(`.react-flow__node[data-id="${CSS.escape(next)}"]`)?.focus();
  };
  const onNodesChange = (changes: NodeChange<Drawn>[]) => {
    if (edit && changes.some((each) => each.type === "position")) aim(changes);
    setLive((old) => changedLive(old, changes));
    const moved = new Map(changes.flatMap((each) => (each.type === "position" && each.position && each.dragging === false ? [[each.id, each.position] as const] : [])));
    const changed = new Map([...moved].filter(([id, at]) => isElsewhere(view, id, at)));
    const [first] = changed.values();
    if (edit && first) {
      edit.move(changed);
      say(t("moved", { x: Math.round(first.x), y: Math.round(first.y) }));
    }
    const chosen = changes.filter((each) => each.type === "select");
    if (chosen.length > 0) choose(withNodes(latest.current, chosen));
  };
  const onConnect = ({ source, sourceHandle, target }: Connection) => edit?.connect(source, sourceHandle ?? OUT, target);
  const onFocus = (event: FocusEvent) => {
    keep.onFocus(event);
    setFocused(event.target.closest<HTMLElement>(".react-flow__node")?.dataset["id"] ?? focused);
  };
  const onDrop = (event: DragEvent) => {
    const type = event.dataTransfer.getData(DRAGGED);
    if (!type || !edit || !flow.current) return;
    event.preventDefault();
    edit.drop(type, flow.current.screenToFlowPosition({ x: event.clientX, y: event.clientY }));
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- the keys of its nodes
    <section ref={drawing} className="canvas" aria-label={t("graph", { name })} data-part="work" onKeyDownCapture={onKeyDown} onFocus={onFocus} onBlur={keep.onBlur}>
      <output className="away">{said}</output>
      <ReactFlow
        onDragOver={(event) => event.preventDefault()}
        onDrop={onDrop}
        nodes={nodes}
        edges={edges}
        nodeTypes={TYPES}
        edgeTypes={EDGES}
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
  // React Flow tells where a node was before the key.
  "node.a11yDescription.ariaLiveMessage": () => "",
  "edge.a11yDescription.default": t("edgeKeys"),
  "controls.ariaLabel": t("view"),
  "controls.zoomIn.ariaLabel": t("zoomIn"),
  "controls.zoomOut.ariaLabel": t("zoomOut"),
  "controls.fitView.ariaLabel": t("fitView"),
};
