import { describe, expect, it } from "vitest";
import { statusesIn, toggledStatus, withoutStatus, writeRunQuery } from "@/models/runQuery";
import { type TimelineVisit, axisOf, barsOf, mapOf, nodeOfTitle, nodeStatesAt, placeOf, rowsOf, stateAt, stepShown, targetOfTitle } from "@/models/timeline";
import { changesBetween } from "@/models/state";
import { objectIn, patchOf, treeOf } from "@/models/tree";

const at = (second: number): string => new Date(1_800_000_000_000 + second * 1000).toISOString();
const ms = (second: number): number => 1_800_000_000_000 + second * 1000;

function visit(node: string, from: number, to: number | null, more: Partial<TimelineVisit> = {}): TimelineVisit {
  return { node, scope: "", visit: 1, state: to === null ? "running" : "done", startedAt: at(from), endedAt: to === null ? null : at(to), waits: [], seq: to === null ? -1 : to, ...more };
}

describe("the search of runs", () => {
  it("has its statuses in one word, and keeps every other word", () => {
    expect(statusesIn('status:failed,running flow:"my flow" time out')).toEqual(["failed", "running"]);
    expect(withoutStatus('status:failed flow:"my flow" created<2d time out')).toBe('flow:"my flow" created<2d time out');
    expect(toggledStatus("flow:claims", "failed")).toBe("status:failed flow:claims");
    expect(toggledStatus("status:failed status:running flow:claims", "failed")).toBe("status:running flow:claims");
    expect(toggledStatus("status:failed", "failed")).toBe("");
    expect(writeRunQuery({ status: ["failed", "running"], flow: "my flow" })).toBe('status:failed,running flow:"my flow"');
    expect(writeRunQuery({ status: [], flow: "" })).toBe("");
  });
});

describe("the bars of a visit", () => {
  it("are one for each attempt, with the waits between", () => {
    const waits = [{ kind: "retry", since: at(2), until: at(5), about: "" }];
    const bars = barsOf(visit("pay", 0, 8, { waits }), ms(9));
    expect(bars.map((each) => [each.kind, each.from, each.to, each.attempt])).toEqual([
      ["attempt", ms(0), ms(2), 1],
      ["wait", ms(2), ms(5), 1],
      ["attempt", ms(5), ms(8), 2],
    ]);
  });
  it("reach until now while it is open, and there is one even if it took no time", () => {
    const waits = [{ kind: "person", since: at(1), until: null, about: "Sure?" }];
    expect(barsOf(visit("ask", 1, null, { waits }), ms(60)).map((each) => [each.kind, each.to])).toEqual([["wait", ms(60)]]);
    expect(barsOf(visit("read", 3, 3), ms(9))).toHaveLength(1);
  });
});

describe("the axis", () => {
  it("cuts a long pause and says how long it was", () => {
    const waits = [{ kind: "person", since: at(10), until: at(90_010), about: "" }];
    const bars = [...barsOf(visit("read", 0, 10), 0), ...barsOf(visit("ask", 10, 90_010, { waits }), 0), ...barsOf(visit("pay", 90_010, 90_020), 0)];
    const axis = axisOf(bars);
    expect(axis.cuts.map((each) => each.ms)).toEqual([90_000_000]);
    expect(axis.place(ms(10))).toBeCloseTo(48);
    expect(axis.place(ms(90_010))).toBeCloseTo(52);
    expect(axis.place(ms(90_020))).toBeCloseTo(100);
  });
  it("stays within 0 and 100, also without bars", () => {
    expect(axisOf([]).place(5)).toBe(0);
    const axis = axisOf(barsOf(visit("a", 0, 10), 0));
    expect([axis.place(ms(-5)), axis.place(ms(5)), axis.place(ms(99))]).toEqual([0, 50, 100]);
  });
});

describe("what stood at a record", () => {
  const visits = [visit("read", 0, 1), visit("price", 1, 2), visit("pay", 2, 4, { state: "failed" })];
  const point = { seq: 2, at: at(2) };
  it("is what had ended, what ran, and what had not begun", () => {
    expect(visits.map((each) => stateAt(each, point))).toEqual(["done", "done", "running"]);
    expect(stateAt(visit("late", 9, 10), point)).toBe("later");
    expect(visits.map((each) => stateAt(each, null))).toEqual(["done", "done", "failed"]);
    expect([...nodeStatesAt(visits, { seq: 1, at: at(0.5) })]).toEqual([["read", "done"]]);
  });
  it("is told by microseconds", () => {
    const starts = ["2027-01-15T08:00:00.000100Z", "2027-01-15T08:00:00.000101Z", "2027-01-15T08:00:00Z"];
    const found = starts.map((startedAt) => stateAt(visit("pay", 0, 4, { startedAt }), { seq: 1, at: starts[0]! }));
    expect(found).toEqual(["running", "later", "running"]);
  });
  it("names the step: the chosen one, else the record's, else the one that failed", () => {
    expect(stepShown(visits, 1, 2)?.node).toBe("read");
    expect(stepShown(visits, undefined, 3)?.node).toBe("price");
    expect(stepShown(visits, undefined, undefined)?.node).toBe("pay");
    expect(stepShown(visits, 77, undefined)).toBeNull();
  });
  it("is found among checkpoints that skip records", () => {
    const points = [0, 1, 2, 4].map((seq) => ({ seq, at: at(seq) }));
    expect([placeOf(points, undefined), placeOf(points, 3), placeOf(points, 99)]).toEqual([3, 2, 3]);
  });
});

describe("the rows", () => {
  const items = [visit("read", 0, 1), visit("a", 1, 2, { scope: "prices[0]" }), visit("a", 1, 2, { scope: "prices[1]" }), visit("pay", 2, 3)];
  it("fold the items of a map until it is opened", () => {
    expect(rowsOf(items, new Set()).map((row) => (row.kind === "map" ? row.visits.length : row.visit.node))).toEqual(["read", 2, "pay"]);
    expect(rowsOf(items, new Set(["prices"]))).toHaveLength(5);
    expect([mapOf("prices[12]"), mapOf("prices#3"), mapOf("sub")]).toEqual(["prices", "prices", ""]);
  });
  it("fold the map's own visit with its items", () => {
    const rows = rowsOf([visit("prices", 1, 3), ...items], new Set());
    expect(rows.map((row) => (row.kind === "map" ? [row.own?.node, row.visits.length] : row.visit.node))).toEqual([["prices", 2], "read", "pay"]);
  });
  it("match a node of the drawing by its longest name", () => {
    expect(nodeOfTitle("pay. failed. 2 attempts", ["pay", "pay. failed"])).toBe("pay. failed");
    expect(nodeOfTitle("start", ["pay"])).toBe("");
    expect(targetOfTitle("price to pay: big (taken)", ["pay", "price"])).toBe("pay");
    expect(targetOfTitle("price to pay (taken)", ["pa"])).toBe("");
  });
});

describe("the tree of a state", () => {
  const state = { amount: 6, customer: { name: "Nordwerk", city: "Kiel" }, lines: [{ what: "Glass" }] };
  const view = { toggled: new Set<string>(), search: "", changes: [] };
  it("opens its first level, and marks what changed and where", () => {
    const changes = changesBetween({ ...state, amount: 5, customer: { name: "Nordwerk" } }, state);
    const rows = treeOf(state, { ...view, changes });
    expect(rows.map((row) => [row.path, row.change])).toEqual([
      ["amount", "changed"], ["customer", "inside"], ["customer.name", null], ["customer.city", "added"], ["lines", null], ["lines.0", null],
    ]);
    expect(rows[0]!.before).toBe(5);
  });
  it("closes what was toggled and finds keys and values", () => {
    expect(treeOf(state, { ...view, toggled: new Set(["customer", "lines"]) }).map((row) => row.path)).toEqual(["amount", "customer", "lines"]);
    expect(treeOf(state, { ...view, search: "kiel" }).map((row) => row.path)).toEqual(["customer", "customer.city"]);
    expect(treeOf(state, { ...view, search: "glass" }).map((row) => row.path)).toEqual(["lines", "lines.0", "lines.0.what"]);
    expect(treeOf(state, { ...view, search: "nothing" })).toEqual([]);
  });
  it("shows a value that is no object", () => {
    expect(treeOf("text", view).map((row) => row.value)).toEqual(["text"]);
  });
});

describe("a patch", () => {
  it("has the keys that differ, and names those that were removed", () => {
    expect(patchOf({ a: 1, b: { c: 2 }, d: 3 }, { a: 1, b: { c: 4 }, e: 5 })).toEqual({ scratch: { b: { c: 4 }, e: 5 }, removed: ["d"] });
  });
  it("is made of an object only", () => {
    expect([objectIn("{}"), objectIn("[1]"), objectIn("{"), objectIn("null")]).toEqual([{}, null, null, null]);
  });
});
