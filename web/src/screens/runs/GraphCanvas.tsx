/** A large graph as one canvas. A click opens the node under it; keys use the list. */
import { type MouseEvent, useEffect, useRef } from "react";
import { type GraphEdge, type GraphNode, type GraphPicture, type Size, type View, nodeAt } from "@/models/graph";
import type { GraphState } from "./Graph";
import { t } from "./text";

type CanvasProps = { picture: GraphPicture; nodes: GraphNode[]; edges: GraphEdge[]; view: View; size: Size; state: GraphState };

const ROLES: Record<string, string> = { done: "completed", failed: "failed", running: "running", asking: "input", at_breakpoint: "input", waiting: "sleeping", unknown: "interrupted" };
const READABLE = 0.55;

export function GraphCanvas({ picture, nodes, edges, view, size, state }: CanvasProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !canvas.current) return;
    const scale = window.devicePixelRatio;
    resize(canvas.current, size.width * scale, size.height * scale);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.current.width, canvas.current.height);
    const style = getComputedStyle(canvas.current);
    const known = new Map<string, string>();
    const colour = (name: string) => {
      const found = known.get(name) ?? style.getPropertyValue(name).trim();
      known.set(name, found);
      return found;
    };
    context.setTransform(scale * view.zoom, 0, 0, scale * view.zoom, -view.x * scale * view.zoom, -view.y * scale * view.zoom);
    for (const node of nodes) if (node.inside === "open") drawNode(context, node, view.zoom, state, colour);
    drawEdges(context, edges, state, colour);
    for (const node of nodes) if (node.inside !== "open") drawNode(context, node, view.zoom, state, colour);
  }, [nodes, edges, view, size, state]);
  const clicked = (event: MouseEvent) => {
    const at = event.currentTarget.getBoundingClientRect();
    const found = nodeAt(nodes, view.x + (event.clientX - at.left) / view.zoom, view.y + (event.clientY - at.top) / view.zoom);
    if (found) state.onOpen(found.id);
  };
  return (
    <>
      {/* oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-static-element-interactions -- the list has the same actions by key */}
      <canvas ref={canvas} className="graph-canvas" style={{ width: size.width, height: size.height }} onClick={clicked} aria-hidden="true" />
      <p className="away">{t("drawnWhole", { count: picture.nodes.length })}</p>
    </>
  );
}

/** A canvas that gets a size, even its own, gets new memory. */
function resize(canvas: HTMLCanvasElement, width: number, height: number): void {
  if (canvas.width !== Math.floor(width)) canvas.width = width;
  if (canvas.height !== Math.floor(height)) canvas.height = height;
}

const paths = new WeakMap<GraphEdge, Path2D>();

/** Read once for all frames. */
function pathOf(edge: GraphEdge): Path2D {
  const found = paths.get(edge) ?? new Path2D(edge.path);
  paths.set(edge, found);
  return found;
}

type Colour = (name: string) => string;

function drawEdges(context: CanvasRenderingContext2D, edges: GraphEdge[], state: GraphState, colour: Colour): void {
  for (const edge of edges) {
    const isTaken = state.taken.has(`${edge.source} ${edge.target} ${edge.id}`);
    context.strokeStyle = isTaken ? colour("--text") : colour("--control-border");
    context.lineWidth = isTaken ? 2.4 : 1.5;
    context.save();
    context.translate(edge.x, edge.y);
    context.stroke(pathOf(edge));
    context.restore();
  }
}

function drawNode(context: CanvasRenderingContext2D, node: GraphNode, zoom: number, state: GraphState, colour: Colour): void {
  const role = ROLES[state.facts.get(node.id)?.state ?? ""];
  context.fillStyle = role ? colour(`--${role}-ground`) : colour("--card");
  context.strokeStyle = role ? colour(`--${role}`) : colour("--control-border");
  context.lineWidth = node.id === state.shown ? 4 : Math.max(1.4, 1 / zoom);
  context.beginPath();
  context.roundRect(node.x, node.y, node.width, node.height, 9);
  context.fill();
  context.stroke();
  if (zoom < READABLE || node.label === "") return;
  context.fillStyle = colour("--text");
  context.font = `600 13px ${colour("--font") || "sans-serif"}`;
  context.textAlign = "center";
  context.fillText(node.label.slice(0, 34), node.x + node.width / 2, node.y + 24, node.width - 12);
}
