/** How an edge gets past the nodes between its ends: beside them, never through them. */
import { type CanvasView, type Placed, placedNodes } from "./canvasView";

const ROOM = 24;

/** Where across an edge from one node down to another runs; null: straight, nothing lies between. */
export function laneOf(source: Placed, target: Placed, nodes: readonly Placed[]): number | null {
  const from = { x: source.x + source.width / 2, y: source.y + source.height };
  const to = { x: target.x + target.width / 2, y: target.y };
  const between = nodes.filter((each) => each.id !== source.id && each.id !== target.id && each.y >= from.y && each.y + each.height <= to.y);
  const at = (y: number) => from.x + ((to.x - from.x) * (y - from.y)) / (to.y - from.y);
  if (!between.some((each) => covers(each, at(each.y)) || covers(each, at(each.y + each.height)))) return null;
  const middle = (from.x + to.x) / 2;
  const [left, right] = [free(middle, between, -1), free(middle, between, 1)];
  return middle - left < right - middle ? left : right;
}

/** Where an edge that leads up, or back to its own node, runs: beside all nodes at the heights that it passes. */
export function laneUp(source: Placed, target: Placed, nodes: readonly Placed[]): number {
  const beside = nodes.filter((each) => each.y <= source.y + source.height && each.y + each.height >= target.y);
  const middle = (source.x + source.width / 2 + target.x + target.width / 2) / 2;
  const [left, right] = [free(middle, beside, -1), free(middle, beside, 1)];
  return middle - left < right - middle ? left : right;
}

function covers(node: Placed, x: number): boolean {
  return x > node.x - ROOM / 2 && x < node.x + node.width + ROOM / 2;
}

/** The nearest place on a side that no node covers. */
function free(from: number, nodes: readonly Placed[], side: 1 | -1): number {
  const sorted = nodes.toSorted((one, other) => side * (one.x - other.x));
  let x = from;
  for (const each of sorted) if (covers(each, x)) x = side > 0 ? each.x + each.width + ROOM : each.x - ROOM;
  return x;
}

const APART = 14;
type Used = { x: number; top: number; bottom: number };

/** Beside the other edges there, and not on them. */
function apart(used: readonly Used[], x: number, { top, bottom }: Omit<Used, "x">, side: 1 | -1): number {
  const isTaken = used.some((each) => Math.abs(each.x - x) < APART && each.top <= bottom && each.bottom >= top);
  return isTaken ? apart(used, x + side * APART, { top, bottom }, side) : x;
}

/** Of the edges that have to pass nodes, by their ids. */
export function lanesOf(view: CanvasView): Map<string, number> {
  const parents = new Map(view.nodes.map((each) => [each.id, each.parent]));
  const places = placedNodes(view);
  const byId = new Map(places.map((each) => [each.id, each]));
  const found = new Map<string, number>();
  const used: Used[] = [];
  for (const { id, source, target } of view.edges) {
    const [from, to, around] = [byId.get(source), byId.get(target), parents.get(source)];
    if (!from || !to || parents.get(target) !== around) continue;
    const level = places.filter((each) => parents.get(each.id) === around);
    if (to.y > from.y + from.height) {
      const lane = laneOf(from, to, level);
      if (lane !== null) {
        found.set(id, lane);
        used.push({ x: lane, top: from.y + from.height, bottom: to.y });
      }
      continue;
    }
    const span = { top: to.y - TURN, bottom: from.y + from.height + TURN };
    const first = laneUp(from, to, level);
    const lane = apart(used, first, span, first < (from.x + from.width / 2 + to.x + to.width / 2) / 2 ? -1 : 1);
    used.push({ x: lane, ...span });
    found.set(id, lane);
  }
  return found;
}

/** How far from its ends an edge is on its lane: its label is there, above the nodes that it passes. */
export const BEND = 56;
/** The height of the turn of an edge that leads up, below its source and above its target. */
const TURN = 32;
/** How far below its source the turn comes: its label is there, where no node is. */
export const LOWEST = (TURN * 3) / 4;
type Ends = { sourceX: number; sourceY: number; targetX: number; targetY: number };

/** Down from the one end, along the lane, down to the other. */
export function lanePath({ sourceX, sourceY, targetX, targetY }: Ends, lane: number): string {
  const bend = Math.min(BEND, (targetY - sourceY) / 2);
  const [first, last] = [sourceY + bend, targetY - bend];
  return `M${sourceX},${sourceY} C${sourceX},${(sourceY + first) / 2} ${lane},${(sourceY + first) / 2} ${lane},${first} L${lane},${last} C${lane},${(last + targetY) / 2} ${targetX},${(last + targetY) / 2} ${targetX},${targetY}`;
}

/** Down and around, up along the lane, and from above into the other end, as every edge. */
export function loopPath({ sourceX, sourceY, targetX, targetY }: Ends, lane: number): string {
  const [low, high] = [sourceY + TURN, targetY - TURN];
  return `M${sourceX},${sourceY} C${sourceX},${low} ${lane},${low} ${lane},${sourceY} L${lane},${targetY} C${lane},${high} ${targetX},${high} ${targetX},${targetY}`;
}
