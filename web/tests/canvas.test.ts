import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { NOTHING, still, withEdges, withNodes } from "../src/models/canvasSelection";
import { boxAt, documentView, graphView, statesOf, takenIn } from "../src/models/canvasView";
import { configFields } from "../src/models/configSchema";
import { edgesOf, idProblem, renameNode, setInConfig } from "../src/models/documentData";
import { limitsOf, withKind } from "../src/models/formSections";
import { renamedPorts } from "../src/models/renamed";

describe("what is selected", () => {
  test("is the edge after one click, though the node is left afterwards", () => {
    const before = withNodes(NOTHING, [{ id: "ask", selected: true }]);
    const clicked = withNodes(withEdges(before, [{ id: "a->b", selected: true }]), [{ id: "ask", selected: false }]);
    expect(clicked).toEqual({ nodes: [], edges: ["a->b"] });
  });

  test("is the node after an edge", () => {
    const before = withEdges(NOTHING, [{ id: "a->b", selected: true }]);
    const clicked = withEdges(withNodes(before, [{ id: "ask", selected: true }]), [{ id: "a->b", selected: false }]);
    expect(clicked).toEqual({ nodes: ["ask"], edges: [] });
  });

  test("is only what is still there", () => {
    const view = { nodes: [{ id: "ask" }], edges: [{ id: "a->b" }] };
    expect(still({ nodes: ["set", "ask"], edges: ["gone"] }, view)).toEqual({ nodes: ["ask"], edges: [] });
    const whole = { nodes: ["ask"], edges: ["a->b"] };
    expect(still(whole, view)).toBe(whole);
  });
});

describe("an id", () => {
  const data = {
    input: { properties: { amount: { type: "number" } } },
    nodes: [
      { id: "review", type: "hitl_review", config: { sections: [{ type: "decision", options: [{ id: "approve" }, "reject"] }] } },
      { id: "pay", type: "python", config: { args: { paid: "{{review.paid | default(0)}} for {{ my_review.x }} of review", say: "{{'review'}}{{a.review}}" } } },
      { id: "late", type: "queue_escalation", config: { of: "review", on_timeout: "branch:review", when: "review.paid > 10 and kind == 'review'" } },
    ],
    edges: [
      { source: "review", source_port: "approve", target: "pay", when: "review.paid > 1" },
      { source: "review", source_port: "reject", target: "late" },
    ],
  };

  function ports(options: unknown[]): string[] {
    return edgesOf(renamedPorts(data, setInConfig(data, "review", "sections", [{ type: "decision", options }]), "review")).map((each) => each.port);
  }

  test("is followed by the expressions that read the node", () => {
    const [, pay, late] = renameNode(data, "review", "ask")["nodes"] as { config: Record<string, unknown> }[];
    expect(pay?.config["args"]).toEqual({ paid: "{{ask.paid | default(0)}} for {{ my_review.x }} of review", say: "{{'review'}}{{a.review}}" });
    expect(late?.config).toEqual({ of: "ask", on_timeout: "branch:ask", when: "ask.paid > 10 and kind == 'review'" });
    expect(edgesOf(renameNode(data, "review", "ask"))[0]).toMatchObject({ source: "ask", when: "ask.paid > 1" });
  });

  test("is left in expressions where an input has the same name", () => {
    const same = { ...data, variables: { review: {} } };
    expect((renameNode(same, "review", "ask")["nodes"] as { config: object }[])[1]).toEqual(data.nodes[1]);
  });

  test("is refused with its reason", () => {
    expect(idProblem("done", ["start", "done"])).toBe("idTaken");
    expect(idProblem("ask boss", [])).toBe("idForm");
    expect(idProblem("ask-boss_2", ["ask"])).toBe("");
  });

  test("of an option is followed by its edge, and of two alike by none", () => {
    expect(ports([{ id: "approved" }, "reject"])).toEqual(["approved", "reject"]);
    expect(ports([{ id: "reject" }, "reject"])).toEqual(["approve", "reject"]);
    expect(ports(["reject", { id: "approve" }])).toEqual(["approve", "reject"]);
    expect(ports([{ id: "approve" }])).toEqual(["approve", "reject"]);
  });
});

describe("the canvas", () => {
  test("puts what is dropped on a box into it", () => {
    const data = { nodes: [{ id: "each", type: "map", position: { x: 100, y: 100 } }, { id: "in", type: "loop", parent: "each", position: { x: 40, y: 60 } }, { id: "end", type: "end", position: { x: 900, y: 0 } }] };
    const view = documentView(data, {}, {});
    expect(boxAt(view, { x: 110, y: 110 })).toEqual({ id: "each", inside: { x: 24, y: 56 } });
    expect(boxAt(view, { x: 240, y: 240 })).toEqual({ id: "in", inside: { x: 100, y: 80 } });
    expect(boxAt(view, { x: 910, y: 10 })).toBeNull();
  });

  test("knows the edges that a run took inside of a map by their own names too", () => {
    expect([...takenIn(["start:out->each", "each/ask:yes->pay"])]).toEqual(["start:out->each", "each/ask:yes->pay", "ask:yes->pay"]);
  });

  test("shows a loop as waiting while a node inside of it waits", () => {
    const states = statesOf([{ node: "again", state: "done" }, { node: "again[0]/ask", state: "done" }, { node: "again[1]/ask", state: "asking" }]);
    expect(states.get("again")).toBe("asking");
    expect(states.get("ask")).toBe("asking");
    expect(statesOf([{ node: "again", state: "running" }, { node: "again[1]/ask", state: "asking" }]).get("again")).toBe("running");
  });
});

const ids = (given: Record<string, unknown>) => graphView(given, {}).nodes.map((each) => each.id);

describe("a graph of a stored version", () => {
  const LOOP = {
    nodes: ["start", "again", "again__next", "count", "done", "lone__next"].map((id) => ({ id, kind: "task" })),
    edges: [
      { id: "start:out->again", source: "start", target: "again" },
      { id: "again:__body->count", source: "again", target: "count" },
      { id: "again__next->again", source: "again__next", target: "again", kind: "when", when: "tries < 3" },
      { id: "again:done->done", source: "again__next", target: "done", kind: "otherwise" },
      { id: "count:out->again__next", source: "count", target: "again__next" },
    ],
  };

  test("shows the loops of a document without the node behind them", () => {
    const view = graphView({ ...LOOP, document: { dialect: "canvas", source: { nodes: [] } } }, {});
    expect(view.nodes.map((each) => each.id)).toEqual(["start", "again", "count", "done", "lone__next"]);
    expect(view.edges.map((each) => [each.source, each.target, each.label])).toEqual([
      ["start", "again", ""],
      ["again", "count", ""],
      ["again", "done", "done"],
      ["count", "again", "tries < 3"],
    ]);
  });

  test("hides them inside of others too, and none of a flow of code", () => {
    const around = { nodes: [{ id: "each", kind: "map", map: { body: "inside" } }], edges: [], subgraphs: [{ name: "inside", ...LOOP }] };
    expect(ids({ ...around, document: { source: { nodes: [] } } })).toEqual(["each", "each/start", "each/again", "each/count", "each/done", "each/lone__next"]);
    expect(ids(around)).toContain("each/again__next");
    expect(ids({ ...LOOP, document: { dialect: "dot", source: "digraph {}" } })).toContain("again__next");
  });
});

describe("the settings of a node", () => {
  const schema = JSON.parse(readFileSync(new URL("../../docs/reference/flow.schema.json", import.meta.url), "utf8"));
  const names = (type: string) => {
    const found = configFields(schema, type);
    return { own: found.own.map((each) => each.name), common: found.common.map((each) => each.name) };
  };

  test("of a question begin with what is asked, of whom, and by when; the rest is apart", () => {
    const asked = ["prompt", "options", "assignee", "priority", "timeout", "on_timeout", "context"];
    expect(names("checkpoint").own).toEqual(asked);
    expect(names("hitl_review").own).toEqual(["queue", ...asked]);
    expect(names("checkpoint").common).toContain("reminder");
    expect(names("checkpoint").common).toContain("approval");
  });

  test("of other nodes are all of their own, the required ones first", () => {
    expect(names("llm").own.slice(0, 2)).toEqual(["connection", "prompt"]);
    expect(names("queue_consume").own).toContain("timeout");
    expect(names("queue_consume").own).toContain("match");
    expect(names("set").common).toContain("retry");
  });
});

describe("a field of a form", () => {
  test("has the limits of its kind, and loses those of another", () => {
    expect(limitsOf({ type: "input" })).toEqual(["min_length", "max_length", "pattern"]);
    expect(limitsOf({ type: "input", kind: "currency" })).toEqual(["min", "max", "step"]);
    expect(limitsOf({ type: "input", kind: "date" })).toEqual(["min", "max"]);
    expect(limitsOf({ type: "input", kind: "boolean" })).toEqual([]);
    expect(limitsOf({ type: "decision" })).toEqual([]);
    const text = { type: "input", kind: "text", pattern: "^[A-Z]", max_length: 3 };
    expect(withKind(text, "code")).toEqual({ ...text, kind: "code" });
    expect(withKind(text, "number")).toEqual({ type: "input", kind: "number" });
    expect(withKind({ type: "input", kind: "number", min: 1, step: 2 }, "date")).toEqual({ type: "input", kind: "date", min: 1 });
  });
});
