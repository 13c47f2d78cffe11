import { describe, expect, it } from "vitest";
import { groupsOf, notesOf } from "@/models/canvasNotes";
import { documentView, movedInto } from "@/models/canvasView";
import { moveNodes, nodesOf } from "@/models/documentData";
import { importedText } from "@/models/documentImport";
import { readText, rewriteText } from "@/models/documentText";

const data = {
  nodes: [
    { id: "each", type: "map", position: { x: 0, y: 100 } },
    { id: "in", type: "set", parent: "each", position: { x: 24, y: 56 } },
    { id: "pay", type: "set", position: { x: 600, y: 100 } },
  ],
  notes: [{ id: "n1", text: "Policy 4.2" }, { id: "n2", text: "a\nb" }, { id: "n3", text: "placed on a node", position: { x: 610, y: 110 } }],
  groups: [{ id: "g1", label: "Money", nodes: ["pay", "gone"] }, { id: "g2", label: "Empty", nodes: ["gone"] }],
};
const view = documentView(data, {}, {});

describe("notes and groups", () => {
  it("stand around and beside the nodes, and no note covers anything", () => {
    const groups = groupsOf(data, view);
    expect(groups).toEqual([{ id: "g1", label: "Money", x: 584, y: 64, width: 240, height: 116 }]);
    const notes = notesOf(data, view);
    expect(notes.map(({ id }) => id)).toEqual(["n1", "n2", "n3"]);
    const boxes = [...notes, ...groups, { x: 0, y: 100, width: 256, height: 144 }];
    const over = (one: (typeof boxes)[number], other: (typeof boxes)[number]) =>
      one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
    for (const [place, one] of boxes.entries()) for (const other of boxes.slice(place + 1)) expect(over(one, other)).toBe(false);
  });

  it("stay in the text when a node is moved", () => {
    const text = "nodes:\n  - {id: a, type: set, position: {x: 0, y: 0}}\nnotes: [{id: n1, text: Policy 4.2}] # kept\ngroups: [{id: g1, nodes: [a]}]\n";
    const moved = rewriteText(text, "yaml", moveNodes(readText(text, "yaml").data!, new Map([["a", { x: 8, y: 16 }]])));
    expect(moved).toBe(text.replace("{x: 0, y: 0}", "{x: 8, y: 16}"));
  });
});

const parents = (places: [string, { x: number; y: number }][]) => {
  const moved = moveNodes(data, movedInto(view, new Map(places)));
  return Object.fromEntries(nodesOf(moved).map((each) => [each.id, [each.parent, each.position]]));
};

describe("a node that is moved", () => {
  it("goes into the map that has its middle, with a place inside of it", () => {
    expect(parents([["pay", { x: 40, y: 150 }]])["pay"]).toEqual(["each", { x: 40, y: 56 }]);
  });

  it("leaves the map once its middle is outside, and keeps its place on the canvas", () => {
    expect(parents([["in", { x: 400, y: 300 }]])["in"]).toEqual(["", { x: 400, y: 400 }]);
    expect(parents([["in", { x: 30, y: 60 }]])["in"]).toEqual(["each", { x: 30, y: 60 }]);
  });

  it("is never put into itself", () => {
    expect(parents([["each", { x: 50, y: 120 }]])["each"]).toEqual(["", { x: 50, y: 120 }]);
  });
});

describe("an imported text", () => {
  it("gets the name of the document and keeps its comments", () => {
    const found = importedText("# mine\nname: other\nnodes: [{id: a}, {id: b}]\nedges: []\n", "claims", "yaml");
    expect(found).toMatchObject({ problem: null, nodes: 2, edges: 0, otherName: "other", isRewritten: false });
    expect(found.text).toContain("# mine\nname: claims\n");
  });

  it("is written anew where the document has the other form", () => {
    expect(importedText('{"name": "claims", "nodes": [{"id": "a"}]}', "claims", "yaml")).toMatchObject({ otherName: "", isRewritten: true, text: expect.stringContaining("nodes:\n") as string });
    expect(JSON.parse(importedText("nodes: [{id: a}]", "claims", "json").text)).toEqual({ nodes: [{ id: "a" }], name: "claims" });
  });

  it("says the line where it cannot be read, and refuses what is no document", () => {
    expect(importedText("nodes: [\n", "claims", "yaml").problem?.line).toBeGreaterThan(0);
    expect(importedText("just words", "claims", "yaml")).toMatchObject({ text: "", problem: { line: 1 } });
  });
});
