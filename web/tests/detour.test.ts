import { expect, it } from "vitest";
import type { CanvasEdge, CanvasNode, Placed } from "@/models/canvasView";
import { laneOf, lanePath, lanesOf, laneUp, loopPath } from "@/models/detour";

const node = (id: string, x: number, y: number): Placed => ({ id, x, y, width: 200, height: 60 });
const drawn = (id: string, y: number, parent = ""): CanvasNode => ({ id, type: "task", label: id, parent, position: { x: 0, y }, size: null, ports: [], isBreakpoint: false, isDisabled: false });
const edge = (source: string, target: string): CanvasEdge => ({ id: `${source}-${target}`, source, port: "out", target, label: "", isFailure: false });
const top = node("top", 0, 0);
const end = node("end", 0, 400);

it("an edge is straight where nothing lies between its ends", () => {
  expect(laneOf(top, end, [top, end])).toBeNull();
  expect(laneOf(top, end, [top, end, node("beside", 300, 200)])).toBeNull();
  expect(laneOf(top, end, [top, end, node("below", 0, 600)])).toBeNull();
  expect(laneOf(end, top, [top, end, node("between", 0, 200)])).toBeNull();
});

it("an edge passes the nodes between its ends on the nearer side, also where those stand in a row", () => {
  expect(laneOf(top, end, [top, end, node("between", -40, 200)])).toBe(184);
  expect(laneOf(top, end, [top, end, node("between", 40, 200)])).toBe(16);
  const row = [node("a", 0, 200), node("b", 210, 200)];
  expect(laneOf(top, end, [top, end, ...row])).toBe(-24);
  expect(laneOf(top, end, [top, end, node("a", -210, 200), ...row])).toBe(434);
});

it("its path begins and ends at the nodes and runs along the lane", () => {
  expect(lanePath({ sourceX: 0, sourceY: 0, targetX: 10, targetY: 400 }, 90)).toBe("M0,0 C0,28 90,28 90,56 L90,344 C90,372 10,372 10,400");
});

it("only edges between nodes of one level that have to pass others get a lane", () => {
  const nodes = [drawn("a", 0), drawn("b", 200), drawn("c", 400), drawn("inside", 500, "c")];
  const edges = [edge("a", "b"), edge("a", "c"), edge("c", "a"), edge("a", "inside"), edge("a", "gone")];
  expect([...lanesOf({ nodes, edges })]).toEqual([["a-c", 232], ["c-a", 246]]);
});

it("an edge that leads up runs beside all nodes at the heights that it passes, its own ends too", () => {
  expect(laneUp(end, top, [top, end, node("between", 40, 200)])).toBe(-24);
  expect(laneUp(end, top, [top, end, node("between", -40, 200)])).toBe(224);
  expect(laneUp(top, top, [top, end])).toBe(224);
  // Between two nodes of one row there is room.
  const right = node("right", 400, 0);
  expect(laneUp(right, top, [top, right])).toBe(300);
  expect(loopPath({ sourceX: 0, sourceY: 460, targetX: 10, targetY: 0 }, 90)).toBe("M0,460 C0,492 90,492 90,460 L90,0 C90,-32 10,-32 10,0");
});

it("edges that lead up at the same heights run beside each other", () => {
  const nodes = [drawn("a", 0), drawn("b", 200), drawn("c", 400), drawn("d", 900), drawn("e", 1100)];
  const lanes = lanesOf({ nodes, edges: [edge("c", "a"), edge("b", "a"), edge("c", "c"), edge("e", "d")] });
  expect([...lanes.values()]).toEqual([232, 246, 246, 232]);
});
