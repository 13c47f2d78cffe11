/** A view of a graph as React Flow takes it: nodes, edges, and the notes and groups behind them. */
import { type Edge, MarkerType, type NodeChange } from "@xyflow/react";
import type { CanvasGroup, CanvasNote } from "@/models/canvasNotes";
import type { Selection } from "@/models/canvasSelection";
import type { CanvasView } from "@/models/canvasView";
import { OUT, type Point } from "@/models/documentData";
import { visitWord } from "@/words";
import type { DrawnExtra } from "./CanvasExtras";
import type { DrawnNode } from "./FlowNodeView";
import { t } from "./text";

/** `taken`: edges that the run took whose states are shown. */
export type Marks = { states: ReadonlyMap<string, string>; taken: ReadonlySet<string>; problems: ReadonlyMap<string, number>; errors: ReadonlySet<string>; edgeProblems: ReadonlySet<string> };
export type Drawn = DrawnNode | DrawnExtra;
/** What React Flow has measured, and where a node is while it is dragged. */
export type Live = ReadonlyMap<string, { measured?: { width: number; height: number } | undefined; position?: Point | undefined }>;

export function isElsewhere(view: CanvasView, id: string, at: Point): boolean {
  const old = view.nodes.find((each) => each.id === id)?.position;
  return old === undefined || Math.round(old.x) !== Math.round(at.x) || Math.round(old.y) !== Math.round(at.y);
}

export function changedLive(old: Live, changes: NodeChange<Drawn>[]): Live {
  const next = new Map(old);
  for (const each of changes) {
    if (each.type === "dimensions" && each.dimensions) next.set(each.id, { ...next.get(each.id), measured: each.dimensions });
    if (each.type === "position") next.set(each.id, { measured: next.get(each.id)?.measured, position: each.dragging === true ? each.position : undefined });
  }
  return next;
}

export function drawnExtras({ notes, groups }: { notes: CanvasNote[]; groups: CanvasGroup[] }, live: Live): DrawnExtra[] {
  const still = { selectable: false, draggable: false, focusable: false, connectable: false, zIndex: -1 } as const;
  const drawn = (type: "note" | "group", text: string, { id, x, y, width, height }: CanvasNote | CanvasGroup): DrawnExtra => {
    const name = `${type}:${id}`;
    return { ...still, ...(live.get(name)?.measured ? { measured: live.get(name)!.measured! } : {}), id: name, type, position: { x, y }, width, height, data: { text } };
  };
  return [...groups.map((each) => drawn("group", each.label, each)), ...notes.map((each) => drawn("note", each.text, each))];
}

export function drawnNodes(view: CanvasView, marks: Marks, selection: Selection, live: Live, { reachable, aimed }: { reachable: string; aimed: string }): DrawnNode[] {
  const selected = new Set(selection.nodes);
  return view.nodes.map((each) => {
    const now = live.get(each.id);
    return {
      ...(now?.measured ? { measured: now.measured } : {}),
      id: each.id,
      type: "flow" as const,
      position: now?.position ?? each.position,
      selected: selected.has(each.id),
      data: { node: each, state: marks.states.get(each.id) ?? "", problems: marks.problems.get(each.id) ?? 0, isWrong: marks.errors.has(each.id), isTarget: each.id === aimed },
      domAttributes: { tabIndex: each.id === reachable ? 0 : -1, ...(each.id === reachable ? { "data-stop": each.id } : {}) },
      ...(each.parent ? { parentId: each.parent } : {}),
      ...(each.size ? { width: each.size.width, height: each.size.height } : {}),
      ariaLabel: t("nodeAt", { name: each.label, type: each.type.replaceAll("_", " "), state: wordOf(marks.states.get(each.id)), problems: marks.problems.get(each.id) ?? 0 }),
    };
  });
}

function wordOf(state: string | undefined): string {
  return state ? visitWord(state).word : "none";
}

export function drawnEdges(view: CanvasView, marks: Marks, selection: Selection, lanes: ReadonlyMap<string, number>): Edge[] {
  return view.edges.map((each) => ({
    id: each.id,
    ...(lanes.has(each.id) ? { type: "lane", data: { lane: lanes.get(each.id) } } : {}),
    source: each.source,
    sourceHandle: each.port,
    target: each.target,
    label: each.label,
    markerEnd: { type: MarkerType.ArrowClosed, width: 16, height: 16, color: "var(--control-border)" },
    selected: selection.edges.includes(each.id),
    // The panel of a node leads to its edges.
    domAttributes: { tabIndex: -1 },
    className: [each.isFailure ? "failure" : "", marks.edgeProblems.has(each.id) ? "wrong" : "", marks.taken.has(each.id) ? "taken" : ""].filter(Boolean).join(" "),
    ariaLabel: `${each.source} → ${each.target}${nameOfEdge(each)}`,
    labelBgPadding: [6, 3] as [number, number],
    labelBgBorderRadius: 4,
  }));
}

function nameOfEdge({ label, port }: CanvasView["edges"][number]): string {
  const name = label || (port === OUT ? "" : port);
  return name ? ` (${name})` : "";
}
