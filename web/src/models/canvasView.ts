/** What a canvas draws: nodes with their places and ports, and edges. From a document, or from a graph of code. */
import { type Config, type FlowData, OUT, type Point, edgesOf, isRecord, nodesOf, recordIn, textIn } from "./documentData";
import { plainText } from "./values";
import { PARENTS } from "./nodeTypes";

export type Box = Point & { width: number; height: number };
export type CanvasNode = { id: string; type: string; label: string; parent: string; position: Point; size: { width: number; height: number } | null; ports: string[]; isBreakpoint: boolean; isDisabled: boolean };
export type CanvasEdge = { id: string; source: string; port: string; target: string; label: string; isFailure: boolean };
export type CanvasView = { nodes: CanvasNode[]; edges: CanvasEdge[] };
export type Placed = { id: string; x: number; y: number; width: number; height: number };

const SIZE = { width: 208, height: 64 };
const ROOM = { side: 24, head: 56 };
const ERROR = "error";
const OTHERWISE = "otherwise";
/** Their names are shown at the node only when the pointer is near; those of the others always. */
export const SIDE = new Set([ERROR, "timeout"]);

export function documentView(data: FlowData, boxes: Readonly<Record<string, Box>>, ports: Readonly<Record<string, string[]>>): CanvasView {
  const found = nodesOf(data);
  const edges = edgesOf(data);
  const ids = new Set(found.map((each) => each.id));
  const used = grouped(edges, (each) => each.source);
  // Places of some nodes only would lie on those of the others.
  const isPlaced = found.every((each) => each.position !== null);
  const nodes = found.map((each, at): CanvasNode => ({
    id: each.id,
    type: each.type,
    label: plainText(each.label || each.id),
    parent: ids.has(each.parent) && each.parent !== each.id ? each.parent : "",
    position: (isPlaced ? each.position : boxes[each.id]) ?? { x: 0, y: at * 96 },
    size: null,
    ports: portsOf(ports[each.id], used.get(each.id) ?? []),
    isBreakpoint: each.config["breakpoint"] === true,
    isDisabled: each.isDisabled,
  }));
  return {
    nodes: inOrder(nodes),
    edges: edges.map((each) => ({ id: each.name, source: each.source, port: each.port, target: each.target, label: plainText(each.label || each.when || (each.isOtherwise ? OTHERWISE : "") || (SIDE.has(each.port) ? each.port : "")), isFailure: each.port === ERROR })),
  };
}

/** The port that the next edge leaves: the first without one, and `out` only where the node decides nothing. */
export function freePort(ports: readonly string[], used: readonly string[]): string | null {
  const main = ports.filter((each) => !SIDE.has(each));
  const deciding = main.filter((each) => each !== OUT);
  return (deciding.length > 0 ? deciding : main).find((each) => !used.includes(each)) ?? null;
}

/** Those that the server names, and those that edges use. */
function portsOf(known: string[] | undefined, edges: { port: string }[]): string[] {
  return [...new Set([...(known ?? [OUT, ERROR]), ...edges.map((each) => each.port)])];
}

function grouped<T>(all: readonly T[], nameOf: (each: T) => string): Map<string, T[]> {
  const found = new Map<string, T[]>();
  for (const each of all) {
    const name = nameOf(each);
    const others = found.get(name);
    if (others) others.push(each);
    else found.set(name, [each]);
  }
  return found;
}

/** Each node is an element of the page, and all are in view at first: with more of them the page stands still. */
export const MOST_DRAWN = 1_000;

/** Parents before those inside of them, and as large as these need. */
function inOrder(nodes: CanvasNode[]): CanvasNode[] {
  const byParent = grouped(nodes, (each) => each.parent);
  const ordered: CanvasNode[] = [];
  const add = (parent: string, depth: number) => {
    for (const each of byParent.get(parent) ?? []) {
      ordered.push(each);
      if (depth < 20) add(each.id, depth + 1);
    }
  };
  add("", 0);
  // Nodes that are inside of each other have no place above them.
  const placed = new Set(ordered);
  for (const each of nodes) if (!placed.has(each)) ordered.push({ ...each, parent: "" });
  const insides = grouped(ordered, (each) => each.parent);
  const sized = new Map<string, CanvasNode>();
  for (const each of ordered.toReversed()) {
    const inside = (insides.get(each.id) ?? []).map((other) => sized.get(other.id) ?? other);
    sized.set(each.id, inside.length > 0 || PARENTS.has(each.type) ? { ...each, size: roomFor(inside) } : each);
  }
  return ordered.map((each) => sized.get(each.id) ?? each);
}

function roomFor(inside: CanvasNode[]): { width: number; height: number } {
  const right = Math.max(SIZE.width, ...inside.map((each) => each.position.x + (each.size?.width ?? SIZE.width)));
  const bottom = Math.max(ROOM.head + SIZE.height, ...inside.map((each) => each.position.y + (each.size?.height ?? SIZE.height)));
  return { width: right + ROOM.side, height: bottom + ROOM.side };
}

const TURN = "__next";
const DONE = "done";

/** Whether the graph was made of a flow document. */
function isOfDocument(graph: Config): boolean {
  return "nodes" in recordIn(recordIn(graph, "document"), "source");
}

/** The node behind a loop is in no document: its loop is drawn in its place, as in the pictures of the server. */
function withoutTurns({ nodes, edges }: CanvasView): CanvasView {
  const known = new Set(nodes.map((each) => each.id));
  const loops = new Map(nodes.filter((each) => each.id.endsWith(TURN)).map((each) => [each.id, each.id.slice(0, -TURN.length)]));
  for (const [id, loop] of loops) if (!known.has(loop)) loops.delete(id);
  const back = new Map(edges.filter((each) => loops.get(each.source) === each.target).map((each) => [each.source, each]));
  const drawn = edges.filter((each) => back.get(each.source) !== each).map((each) => {
    const into = loops.get(each.target);
    const from = loops.get(each.source);
    const led = into === undefined ? each : { ...each, target: into, label: each.label || (back.get(each.target)?.label ?? "") };
    return from === undefined ? led : { ...led, source: from, label: led.label === "" || led.label === OTHERWISE ? DONE : led.label };
  });
  return { nodes: nodes.filter((each) => !loops.has(each.id)), edges: drawn };
}

/** Of the common form of every flow. Names of nodes inside have those around them in front. */
export function graphView(graph: Config, boxes: Readonly<Record<string, Box>>): CanvasView {
  const found = wholeView(graph, boxes, "");
  return isOfDocument(graph) ? withoutTurns(found) : found;
}

function wholeView(graph: Config, boxes: Readonly<Record<string, Box>>, around: string): CanvasView {
  const inner = new Map(listIn(graph, "subgraphs").map((each) => [textIn(each, "name"), each]));
  const nodes: CanvasNode[] = [];
  const edges: CanvasEdge[] = [];
  for (const each of listIn(graph, "nodes")) {
    const id = around + textIn(each, "id");
    const box = boxes[id];
    const body = [each["map"], each["subflow"], each["parallel"]].filter(isRecord).map((found) => textIn(found, "body"))[0];
    const inside = inner.get(body ?? "");
    nodes.push({
      id,
      type: textIn(each, "kind") || "task",
      label: textIn(each, "id"),
      parent: around.slice(0, -1),
      position: box ?? { x: 0, y: 0 },
      size: inside && box ? { width: box.width, height: box.height } : null,
      ports: [OUT],
      isBreakpoint: each["breakpoint"] === true,
      isDisabled: false,
    });
    if (inside) {
      const found = wholeView(inside, boxes, `${id}/`);
      nodes.push(...found.nodes);
      edges.push(...found.edges);
    }
  }
  const known = new Set(nodes.map((each) => each.id));
  for (const [at, each] of listIn(graph, "edges").entries()) {
    const source = around + textIn(each, "source");
    const target = around + textIn(each, "target");
    if (!known.has(source) || !known.has(target)) continue;
    edges.push({ id: `${around}${textIn(each, "id") || at}`, source, port: OUT, target, label: textIn(each, "label") || textIn(each, "when") || (each["kind"] === OTHERWISE ? OTHERWISE : ""), isFailure: each["kind"] === "failure" });
  }
  return { nodes, edges };
}

function listIn(given: Config, key: string): Config[] {
  const found = given[key];
  return Array.isArray(found) ? found.filter(isRecord) : [];
}

const ENDED = new Set(["done", "skipped", "abandoned", "stopped", "failed", "unknown", "cancelled"]);

/** The last state of each node of a run. `each[2]/pay` is the node `pay`; while that is not over, `each` is not. */
export function statesOf(visits: readonly { node: string; state: string }[]): Map<string, string> {
  const found = new Map(visits.map((each) => [each.node.split("/").at(-1) ?? "", each.state]));
  const last = new Map(visits.map((each) => [each.node, each.state]));
  for (const [path, state] of last) {
    if (ENDED.has(state)) continue;
    for (const part of path.split("/").slice(0, -1)) {
      const around = part.replace(/\[\d+\]$/, "");
      if (ENDED.has(found.get(around) ?? "done")) found.set(around, state);
    }
  }
  return found;
}

/** The names of edges, from their paths: a canvas of a document names those inside of a map or loop without it. */
export function takenIn(paths: readonly string[]): Set<string> {
  return new Set(paths.flatMap((each) => [each, each.slice(each.lastIndexOf("/") + 1)]));
}

/** Where the nodes are on the whole canvas; their own places are those inside of their parents. */
export function placedNodes({ nodes }: CanvasView): Placed[] {
  const corners = new Map<string, Point>();
  // Parents come first.
  return nodes.map((each) => {
    const around = corners.get(each.parent) ?? { x: 0, y: 0 };
    const corner = { x: around.x + each.position.x, y: around.y + each.position.y };
    corners.set(each.id, corner);
    return { id: each.id, ...corner, ...(each.size ?? SIZE) };
  });
}

/** With the nodes inside of it. */
function withInside(nodes: readonly CanvasNode[], id: string): Set<string> {
  const found = new Set([id]);
  for (const each of nodes) if (found.has(each.parent)) found.add(each.id);
  return found;
}

/** Places of nodes after a move, each with what it is inside of there: a map or loop that has its middle. */
export function movedInto(view: CanvasView, places: ReadonlyMap<string, Point>): Map<string, Point & { parent: string }> {
  const before = new Map(placedNodes(view).map((each) => [each.id, each]));
  return new Map([...places].map(([id, place]) => {
    const node = view.nodes.find((each) => each.id === id);
    const around = before.get(node?.parent ?? "") ?? { x: 0, y: 0 };
    const corner = { x: around.x + place.x, y: around.y + place.y };
    const { width, height } = before.get(id) ?? SIZE;
    const own = withInside(view.nodes, id);
    const box = boxAt(view, { x: corner.x + width / 2, y: corner.y + height / 2 }, own);
    const parent = box?.id ?? "";
    if (parent === (node?.parent ?? "")) return [id, { ...place, parent }];
    const inner = before.get(parent);
    return [id, inner ? { x: Math.max(ROOM.side, corner.x - inner.x), y: Math.max(ROOM.head, corner.y - inner.y), parent } : { ...corner, parent }];
  }));
}

const NONE: ReadonlySet<string> = new Set();

/** The innermost map or loop that is drawn here, and the place inside of it. `except`: what is moved itself. */
export function boxAt(view: CanvasView, at: Point, except = NONE): { id: string; inside: Point } | null {
  let found: { id: string; inside: Point } | null = null;
  for (const [place, corner] of placedNodes(view).entries()) {
    const each = view.nodes[place]!;
    if (except.has(each.id)) continue;
    const inside = { x: at.x - corner.x, y: at.y - corner.y };
    const isIn = each.size !== null && inside.x >= 0 && inside.y >= 0 && inside.x < each.size.width && inside.y < each.size.height;
    if (isIn) found = { id: each.id, inside: { x: Math.max(ROOM.side, inside.x), y: Math.max(ROOM.head, inside.y) } };
  }
  return found;
}

/** Data that a preview of a form may show: from the schema of the input, and the variables. */
export function sampleOf(data: FlowData): Config {
  const found: Config = {};
  const properties = recordIn(recordIn(data, "input"), "properties");
  for (const [name, given] of [...Object.entries(properties), ...Object.entries(recordIn(data, "variables"))]) {
    const schema = isRecord(given) ? given : {};
    const type = textIn(schema, "type");
    found[name] = schema["default"] ?? (type === "number" || type === "integer" ? 100 : type === "boolean" ? true : type === "array" ? [] : type === "object" ? {} : name);
  }
  return found;
}
