import { describe, expect, test } from "vitest";
import { documentView } from "../src/models/canvasView";
import { addNode, changeEdge, connect, edgesOf, moveNodes, nodesOf, pasteNodes, removeParts, renameNode, setInConfig } from "../src/models/documentData";
import { readText, rewriteText } from "../src/models/documentText";
import { linesOf } from "../src/models/textDiff";

const REFUND = `# Refunds above the limit need a person.
holdfast: "1.0"
name: refund   # the flow
ui: {zoom: 1.5}
input: {type: object, required: [amount], properties: {amount: {type: number}}}
nodes:
  - {id: start, type: start}
  # Asked of finance.
  - {id: ask, type: hitl_review, label: Review, position: {x: 240, y: 0},
     config: {queue: reviews, timeout: 2d, sections: [{type: decision, options: [approve, reject]}]}}
  - id: paid   # money
    type: set
    config:
      values:
        paid: "{{amount}}"  # as asked
  - {id: done, type: end}
edges:
  - {source: start, target: ask}
  - {source: ask, source_port: approve, target: paid}   # yes
  - {source: ask, source_port: reject, target: done}
  - {source: paid, target: done}
`;
const JSON_TEXT = `${JSON.stringify(readText(REFUND, "yaml").data, null, 2)}\n`;

function data(text = REFUND) {
  const found = readText(text, "yaml").data;
  if (found === null) throw new Error("not read");
  return found;
}

describe("the text of a document", () => {
  test("is the same if its data is", () => {
    expect(rewriteText(REFUND, "yaml", data())).toBe(REFUND);
    expect(rewriteText(JSON_TEXT, "json", data(JSON_TEXT))).toBe(JSON_TEXT);
  });

  test("changes where a node was moved, and nowhere else", () => {
    const moved = moveNodes(data(), new Map([["ask", { x: 10.4, y: 20 }]]));
    expect(rewriteText(REFUND, "yaml", moved)).toBe(REFUND.replace("{x: 240, y: 0}", "{x: 10, y: 20}"));
    const placed = moveNodes(data(), new Map([["done", { x: 1, y: 2 }]]));
    expect(rewriteText(REFUND, "yaml", placed)).toBe(REFUND.replace("type: end}", "type: end, position: {x: 1, y: 2}}"));
  });

  test("keeps its comments where a value changes", () => {
    const changed = setInConfig(data(), "paid", "values", { paid: "{{total}}", at: "now" });
    const text = rewriteText(REFUND, "yaml", changed);
    expect(text).toBe(REFUND.replace('paid: "{{amount}}"  # as asked', 'paid: "{{total}}"  # as asked\n        at: now'));
  });

  test("gets new nodes and edges in the style of the others", () => {
    const { data: more, id } = addNode(data(), "wait", { x: 0, y: 0 }, { duration: "1h" });
    const text = rewriteText(REFUND, "yaml", connect(more, "paid", "error", id));
    expect(text).toContain("  - {id: done, type: end}\n  - id: wait\n    type: wait\n");
    expect(text).toContain("  - {source: paid, target: done}\n  - {source: paid, target: wait, source_port: error}\n");
    expect(text).toContain("# Asked of finance.");
  });

  test("loses what was removed, and its comment", () => {
    const text = rewriteText(REFUND, "yaml", removeParts(data(), ["ask"], []));
    expect(text).not.toContain("Asked of finance");
    expect(text).toContain("- id: paid   # money");
    expect(edgesOf(data(text)).map((each) => each.name)).toEqual(["paid:out->done"]);
  });

  test("is written anew where an anchor is shared", () => {
    const shared = "a: &x {b: 1}\nc: *x\n";
    expect(readText(rewriteText(shared, "yaml", { a: { b: 2 }, c: { b: 1 } }), "yaml").data).toEqual({ a: { b: 2 }, c: { b: 1 } });
  });

  test("that cannot be read has a place", () => {
    const found = readText("name: refund\nnodes: [", "yaml");
    expect(found.data).toBeNull();
    expect(found.problem?.line).toBeGreaterThan(1);
    expect(readText("- a", "yaml").data).toBeNull();
  });

  test("says what its data says after any change", { timeout: 60_000 }, () => {
    const next = random(7);
    for (const [text, format] of [[REFUND, "yaml"], [JSON_TEXT, "json"]] as const) {
      for (let round = 0; round < 60; round += 1) {
        let now = text as string;
        for (let step = 0; step < 3; step += 1) {
          const changed = mutated(data(now), next) as Record<string, unknown>;
          now = rewriteText(now, format, changed);
          expect(readText(now, format).data).toEqual(JSON.parse(JSON.stringify(changed)));
        }
        expect(now).not.toContain("undefined");
      }
    }
  });
});

describe("the data of a document", () => {
  test("names a node wherever it is named", () => {
    const renamed = renameNode(data(), "ask", "review");
    expect(nodesOf(renamed).map((each) => each.id)).toEqual(["start", "review", "paid", "done"]);
    expect(edgesOf(renamed).filter((each) => each.source === "review")).toHaveLength(2);
  });

  test("has copies with names of their own", () => {
    const { data: more, ids } = pasteNodes(data(), [{ id: "paid", type: "set" }, { id: "done", type: "end" }], [{ source: "paid", target: "done" }]);
    expect(ids).toEqual(["paid_2", "done_2"]);
    expect(edgesOf(more).map((each) => each.name)).toContain("paid_2:out->done_2");
  });

  test("has edges for the other cases, and shows them", () => {
    const changed = changeEdge(data(), "paid:out->done", (edge) => ({ ...edge, otherwise: true }));
    expect(edgesOf(changed).at(-1)?.isOtherwise).toBe(true);
    expect(documentView(changed, {}, {}).edges.at(-1)?.label).toBe("otherwise");
    expect(rewriteText(REFUND, "yaml", changed)).toContain("{source: paid, target: done, otherwise: true}");
  });

  test("has conditions at edges", () => {
    const changed = changeEdge(data(), "paid:out->done", (edge) => ({ ...edge, when: "amount > 9" }));
    expect(edgesOf(changed).at(-1)?.when).toBe("amount > 9");
    expect(rewriteText(REFUND, "yaml", changed)).toContain("{source: paid, target: done, when: amount > 9}");
  });
});

function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

const VALUES = [1, "two", "yes: no", "# no comment", "", true, null, [1, "a"], { id: "n", x: 1 }, {}, [], "two\nlines", "- dash", "{{x}}"];

/** One place of the value is another one, is gone, or is new. */
function mutated(value: unknown, next: () => number): unknown {
  const pick = <T>(items: readonly T[]) => items[Math.floor(next() * items.length)] as T;
  if (Array.isArray(value)) {
    const at = Math.floor(next() * (value.length + 1));
    const dice = next();
    if (at < value.length && dice < 0.6) return value.map((each, place) => (place === at ? mutated(each, next) : each));
    if (dice < 0.75) return value.toSpliced(at, 1);
    if (dice < 0.85) return value.toReversed();
    return value.toSpliced(at, 0, pick(VALUES));
  }
  if (typeof value === "object" && value !== null) {
    const keys = Object.keys(value);
    const dice = next();
    if (keys.length > 0 && dice < 0.75) {
      const key = pick(keys);
      return { ...value, [key]: mutated((value as Record<string, unknown>)[key], next) };
    }
    if (keys.length > 0 && dice < 0.85) return Object.fromEntries(Object.entries(value).filter(([key]) => key !== keys[0]));
    return { ...value, [`new_${Math.floor(next() * 100)}`]: pick(VALUES) };
  }
  return pick(VALUES);
}

describe("two texts", () => {
  test("are compared by line, with a few lines around what differs", () => {
    const found = linesOf("a\nb\nc\nd\ne\nf\ng", "a\nb\nc\nD\ne\nf\ng");
    expect(found.map((each) => `${each.kind} ${each.text}`)).toEqual(["place …", "same b", "same c", "removed d", "added D", "same e", "same f", "place …"]);
    expect(linesOf("a", "a").filter((each) => each.kind !== "place")).toEqual([]);
  });
});
