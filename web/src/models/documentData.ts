/** The data of a flow document, as the canvas reads and changes it. Each change gives new data. */

import { renamedReferences } from "./renamed";

export type FlowData = Record<string, unknown>;
export type Config = Record<string, unknown>;
export type Point = { x: number; y: number };
export type FlowNode = { id: string; type: string; label: string; position: Point | null; parent: string; isDisabled: boolean; config: Config };
export type FlowEdge = { name: string; source: string; port: string; target: string; when: string; isOtherwise: boolean; label: string };

export const OUT = "out";

export function nodesOf(data: FlowData): FlowNode[] {
  const seen = new Set<string>();
  return partsIn(data, "nodes").flatMap((each) => {
    const id = textIn(each, "id");
    if (id === "" || seen.has(id)) return [];
    seen.add(id);
    return [{ id, type: textIn(each, "type"), label: textIn(each, "label"), position: pointIn(each), parent: textIn(each, "parent"), isDisabled: each["disabled"] === true, config: recordIn(each, "config") }];
  });
}

export function edgesOf(data: FlowData): FlowEdge[] {
  const known = new Set(nodesOf(data).map((each) => each.id));
  const seen = new Set<string>();
  return partsIn(data, "edges").flatMap((each) => {
    const edge = edgeOf(each);
    if (!known.has(edge.source) || !known.has(edge.target) || seen.has(edge.name)) return [];
    seen.add(edge.name);
    return [edge];
  });
}

function edgeOf(given: Config): FlowEdge {
  const source = textIn(given, "source");
  const target = textIn(given, "target");
  const port = String(given["source_port"] ?? given["sourceHandle"] ?? OUT);
  return { name: textIn(given, "id") || `${source}:${port}->${target}`, source, port, target, when: textIn(given, "when"), isOtherwise: given["otherwise"] === true, label: textIn(given, "label") };
}

/** What tells an item of a list from its neighbours, while it changes. */
export function nameOf(value: unknown): string {
  if (!isRecord(value)) return JSON.stringify(value) ?? "";
  if (typeof value["id"] === "string") return `id ${value["id"]}`;
  if (typeof value["source"] === "string") return `edge ${edgeOf(value).name}`;
  if (typeof value["field"] === "string") return `field ${value["field"]}`;
  return JSON.stringify(value);
}

// ---- changes

export function addNode(data: FlowData, type: string, position: Point, config: Config, parent = ""): { data: FlowData; id: string } {
  const id = freeId(data, type);
  const node: Config = { id, type, position: rounded(position) };
  if (parent) node["parent"] = parent;
  if (Object.keys(config).length > 0) node["config"] = config;
  return { data: { ...data, nodes: [...listIn(data, "nodes"), node] }, id };
}

export function changeNode(data: FlowData, id: string, change: (node: Config) => Config): FlowData {
  return { ...data, nodes: listIn(data, "nodes").map((each) => (isRecord(each) && each["id"] === id ? change(each) : each)) };
}

/** `value` undefined: the key is removed. */
export function setInConfig(data: FlowData, id: string, key: string, value: unknown): FlowData {
  return changeNode(data, id, (node) => {
    const config = without({ ...recordIn(node, "config"), [key]: value });
    return without({ ...node, config: Object.keys(config).length > 0 || "config" in node ? config : undefined });
  });
}

/** `parent`: what the node is inside of from now on, empty for nothing; without it that stays. */
export function moveNodes(data: FlowData, places: ReadonlyMap<string, Point & { parent?: string }>): FlowData {
  const moved = listIn(data, "nodes").map((each) => {
    const place = isRecord(each) ? places.get(textIn(each, "id")) : undefined;
    if (!place || !isRecord(each)) return each;
    const around = place.parent === undefined ? {} : { parent: place.parent || undefined };
    return without({ ...each, ...around, position: { ...recordIn(each, "position"), ...rounded(place) } });
  });
  return { ...data, nodes: moved };
}

export function connect(data: FlowData, source: string, port: string, target: string): FlowData {
  const edge: Config = { source, target };
  if (port !== OUT) edge["source_port"] = port;
  const name = edgeOf(edge).name;
  if (partsIn(data, "edges").some((each) => edgeOf(each).name === name)) return data;
  return { ...data, edges: [...listIn(data, "edges"), edge] };
}

export function changeEdge(data: FlowData, name: string, change: (edge: Config) => Config): FlowData {
  return { ...data, edges: listIn(data, "edges").map((each) => (isRecord(each) && edgeOf(each).name === name ? without(change(each)) : each)) };
}

/** With the nodes inside of them, and the edges of all of them. */
export function removeParts(data: FlowData, nodes: readonly string[], edges: readonly string[]): FlowData {
  const gone = new Set(nodes);
  for (const each of nodesOf(data)) if (gone.has(each.parent)) gone.add(each.id);
  const kept = listIn(data, "edges").filter((each) => {
    const edge = isRecord(each) ? edgeOf(each) : null;
    return edge === null || !(edges.includes(edge.name) || gone.has(edge.source) || gone.has(edge.target));
  });
  const left = listIn(data, "nodes").filter((each) => !isRecord(each) || !gone.has(textIn(each, "id")));
  return { ...data, nodes: left, ...("edges" in data ? { edges: kept } : {}) };
}

/** Why a node cannot be named so, as a key of the catalogue; empty if it can. */
export function idProblem(id: string, taken: readonly string[]): "" | "idTaken" | "idForm" {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(id)) return "idForm";
  return taken.includes(id) ? "idTaken" : "";
}

/** The id, wherever the document names the node. */
export function renameNode(before: FlowData, id: string, name: string): FlowData {
  const data = renamedReferences(before, id, name);
  const other = (value: unknown) => (value === id ? name : value);
  const nodes = listIn(data, "nodes").map((each) => (isRecord(each) ? { ...each, id: other(each["id"]), ...("parent" in each ? { parent: other(each["parent"]) } : {}) } : each));
  const edges = listIn(data, "edges").map((each) => (isRecord(each) ? { ...each, source: other(each["source"]), target: other(each["target"]) } : each));
  const groups = listIn(data, "groups").map((each) => (isRecord(each) && Array.isArray(each["nodes"]) ? { ...each, nodes: each["nodes"].map(other) } : each));
  return { ...data, nodes, ...("edges" in data ? { edges } : {}), ...("groups" in data ? { groups } : {}) };
}

/** Copies of nodes with the edges between them, a little aside. */
export function pasteNodes(data: FlowData, copied: readonly Config[], edges: readonly Config[]): { data: FlowData; ids: string[] } {
  const names = new Map<string, string>();
  let made = data;
  for (const each of copied) {
    const id = freeId(made, textIn(each, "id").replace(/_?\d+$/, "") || textIn(each, "type"));
    names.set(textIn(each, "id"), id);
    const at = pointIn(each);
    const node = { ...each, id, ...(at ? { position: { x: at.x + 32, y: at.y + 32 } } : {}) };
    made = { ...made, nodes: [...listIn(made, "nodes"), node] };
  }
  for (const each of edges) {
    const edge = edgeOf(each);
    made = connect(made, names.get(edge.source) ?? edge.source, edge.port, names.get(edge.target) ?? edge.target);
  }
  return { data: made, ids: [...names.values()] };
}

export function freeId(data: FlowData, base: string): string {
  const known = new Set(nodesOf(data).map((each) => each.id));
  if (!known.has(base)) return base;
  let number = 2;
  while (known.has(`${base}_${number}`)) number += 1;
  return `${base}_${number}`;
}

// ---- small

export function isSame(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) return left.length === right.length && left.every((each, at) => isSame(each, right[at]));
  if (!isRecord(left) || !isRecord(right)) return false;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  return [...keys].every((key) => isSame(left[key], right[key]));
}

export function without(given: Config): Config {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

export function partsIn(data: FlowData, key: "nodes" | "edges"): Config[] {
  return listIn(data, key).filter(isRecord);
}

export function isRecord(value: unknown): value is Config {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function recordIn(given: Config, key: string): Config {
  const found = given[key];
  return isRecord(found) ? found : {};
}

export function textIn(given: Config, key: string): string {
  const found = given[key];
  return typeof found === "string" ? found : "";
}

function listIn(given: Config, key: string): unknown[] {
  const found = given[key];
  return Array.isArray(found) ? found : [];
}

function pointIn(given: Config): Point | null {
  const { x, y } = recordIn(given, "position");
  return typeof x === "number" && typeof y === "number" ? { x, y } : null;
}

function rounded({ x, y }: Point): Point {
  return { x: Math.round(x), y: Math.round(y) };
}
