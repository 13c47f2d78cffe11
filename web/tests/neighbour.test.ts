import { describe, expect, it } from "vitest";
import { inReadingOrder, neighbour, roved } from "@/models/neighbour";

const at = (id: string, x: number, y: number) => ({ id, x, y, width: 100, height: 40 });
// A graph that splits and joins again.
const nodes = [at("end", 100, 300), at("start", 100, 0), at("left", 0, 150), at("right", 200, 150), at("far", 600, 160)];

describe("keys in a graph", () => {
  it("lead to the nearest node in their direction", () => {
    expect(neighbour(nodes, "left", "ArrowRight")).toBe("right");
    expect(neighbour(nodes, "right", "ArrowRight")).toBe("far");
    expect(neighbour(nodes, "left", "ArrowDown")).toBe("end");
    expect(neighbour(nodes, "left", "ArrowUp")).toBe("start");
  });

  it("lead nowhere at the edge of the graph, and for other keys", () => {
    expect(neighbour(nodes, "start", "ArrowUp")).toBeNull();
    expect(neighbour(nodes, "start", "a")).toBeNull();
    expect(neighbour(nodes, "gone", "ArrowDown")).toBeNull();
    expect(neighbour([], "", "Home")).toBeNull();
  });

  it("lead to the first and to the last from above", () => {
    expect([neighbour(nodes, "left", "Home"), neighbour(nodes, "left", "End")]).toEqual(["start", "end"]);
    expect(inReadingOrder(nodes).map(({ id }) => id)).toEqual(["start", "left", "right", "far", "end"]);
  });

  it("reach every node from the first one", () => {
    const reached = new Set(["start"]);
    for (const id of reached) for (const key of ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"]) reached.add(neighbour(nodes, id, key) ?? id);
    expect(reached.size).toBe(nodes.length);
  });
});

describe("keys in a list", () => {
  it("stay inside of it", () => {
    expect(["ArrowDown", "ArrowUp", "PageDown", "Home", "End"].map((key) => roved(key, 1, 5))).toEqual([2, 0, 4, 0, 4]);
    expect([roved("ArrowUp", 0, 5), roved("ArrowDown", 4, 5), roved("x", 1, 5), roved("Home", 0, 0)]).toEqual([0, 4, null, null]);
  });
});
