/** The graph of a run: what each node was at a record, and what part of it is in view. */
import { PAUSED, type Point, type TimelineVisit, stateAt } from "./timeline";

export type GraphNode = { id: string; label: string; shape: string; x: number; y: number; width: number; height: number; detail: string; inside: string };
export type GraphEdge = { id: string; source: string; target: string; label: string; look: string; path: string; x: number; y: number; headX: number; headY: number; labelX: number; labelY: number };
export type GraphPicture = { width: number; height: number; nodes: GraphNode[]; edges: GraphEdge[] };
export type View = { x: number; y: number; zoom: number };
export type Size = { width: number; height: number };
export type Box = { left: number; top: number; right: number; bottom: number };
/** Of a node over all its visits. `seq`: the record of its last step. */
export type NodeFact = { state: string; visits: number; items: number; done: number; seq: number };
export type GraphVisit = TimelineVisit & { path: string; inside: { items: number; done: number } | null };

export const MOST_NODES = 300;
export const LEAST_ZOOM = 0.4;
const MARGIN = 24;
const FIRST = ["failed", "asking", PAUSED, "running", "waiting", "unknown", "ready"];

/** By path. `flat`: nodes have no path, as stages of a pipeline. */
export function factsAt(visits: readonly GraphVisit[], point: Point | null, flat: boolean): Map<string, NodeFact> {
  const found = new Map<string, NodeFact>();
  for (const visit of visits) {
    const state = stateAt(visit, point);
    if (state === "later") continue;
    const id = flat ? visit.path.slice(visit.path.lastIndexOf("/") + 1) : visit.path;
    const old = found.get(id);
    const isOpen = visit.endedAt === null && FIRST.includes(state);
    const kept = old && FIRST.includes(old.state) && !isOpen && FIRST.indexOf(old.state) > 0 ? old.state : state;
    found.set(id, {
      state: kept,
      visits: (old?.visits ?? 0) + 1,
      // What is inside is counted as it is now.
      items: (old?.items ?? 0) + (point === null ? (visit.inside?.items ?? 0) : 0),
      done: (old?.done ?? 0) + (point === null ? (visit.inside?.done ?? 0) : 0),
      seq: visit.seq >= 0 ? visit.seq : (old?.seq ?? -1),
    });
  }
  return found;
}

/** An edge was taken by then if it was taken at all and both its ends had begun. Without an id: from the start. */
export function isTaken(edge: GraphEdge, taken: ReadonlySet<string>, facts: ReadonlyMap<string, NodeFact>): boolean {
  const hasBegun = (id: string) => facts.has(id) || /(^|\/)__(START|END)__$/.test(id);
  return (edge.id === "" || taken.has(edge.id)) && hasBegun(edge.source) && hasBegun(edge.target);
}

/** The node to follow: the one that needs a look, else the one that began last. */
export function activeNode(nodes: readonly GraphNode[], facts: ReadonlyMap<string, NodeFact>): string {
  for (const state of FIRST) {
    const found = nodes.findLast((each) => facts.get(each.id)?.state === state);
    if (found) return found.id;
  }
  let last = { id: "", seq: -1 };
  for (const node of nodes) {
    const seq = facts.get(node.id)?.seq ?? -1;
    if (seq > last.seq) last = { id: node.id, seq };
  }
  return last.id;
}

/** The part of the picture that a view shows. */
export function boxOf(view: View, size: Size): Box {
  return { left: view.x, top: view.y, right: view.x + size.width / view.zoom, bottom: view.y + size.height / view.zoom };
}

export function nodesIn(nodes: readonly GraphNode[], box: Box): GraphNode[] {
  return nodes.filter((each) => each.x <= box.right && each.x + each.width >= box.left && each.y <= box.bottom && each.y + each.height >= box.top);
}

export function edgesIn(edges: readonly GraphEdge[], boxes: ReadonlyMap<GraphEdge, Box>, box: Box): GraphEdge[] {
  return edges.filter((each) => {
    const own = boxes.get(each);
    return own !== undefined && own.left <= box.right && own.right >= box.left && own.top <= box.bottom && own.bottom >= box.top;
  });
}

/** Around all points of its curve. */
export function edgeBox(edge: GraphEdge): Box {
  const numbers = (edge.path.match(/-?\d+(\.\d+)?/g) ?? []).map(Number);
  const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let place = 0; place + 1 < numbers.length; place += 2) {
    const [x, y] = [edge.x + numbers[place]!, edge.y + numbers[place + 1]!];
    box.left = Math.min(box.left, x);
    box.right = Math.max(box.right, x);
    box.top = Math.min(box.top, y);
    box.bottom = Math.max(box.bottom, y);
  }
  return box;
}

/** Many elements make a page slow, and small ones cannot be read: then one picture is drawn. */
export function isDrawn(count: number, zoom: number): boolean {
  return count > MOST_NODES || zoom < LEAST_ZOOM;
}

/** All of it, but never larger than it is. */
export function fitted(picture: Size, size: Size): View {
  const zoom = Math.min(1, Math.max(0.05, Math.min((size.width - 2 * MARGIN) / picture.width, (size.height - 2 * MARGIN) / picture.height)));
  return { zoom, x: (picture.width - size.width / zoom) / 2, y: (picture.height - size.height / zoom) / 2 };
}

/** At a size that can be read: all of it if that is large enough, else its top. */
export function firstView(picture: Size, size: Size): View {
  const whole = fitted(picture, size);
  if (whole.zoom >= 0.6) return whole;
  const zoom = Math.min(1, Math.max(0.6, (size.width - 2 * MARGIN) / picture.width));
  return { zoom, x: (picture.width - size.width / zoom) / 2, y: -MARGIN };
}

export function zoomedAt(view: View, by: number, at: { x: number; y: number }): View {
  const zoom = Math.min(2, Math.max(0.05, view.zoom * by));
  return { zoom, x: view.x + at.x / view.zoom - at.x / zoom, y: view.y + at.y / view.zoom - at.y / zoom };
}

export function centredOn(node: GraphNode, view: View, size: Size): View {
  return { ...view, x: node.x + node.width / 2 - size.width / view.zoom / 2, y: node.y + node.height / 2 - size.height / view.zoom / 2 };
}

export function isInside(node: GraphNode, box: Box): boolean {
  return node.x >= box.left && node.x + node.width <= box.right && node.y >= box.top && node.y + node.height <= box.bottom;
}

/** The innermost node at a place of the picture. */
export function nodeAt(nodes: readonly GraphNode[], x: number, y: number): GraphNode | undefined {
  return nodes.findLast((each) => x >= each.x && x <= each.x + each.width && y >= each.y && y <= each.y + each.height && each.label !== "");
}
