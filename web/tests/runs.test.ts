import { describe, expect, it } from "vitest";
import { isPausedIn, statusesIn, toggledPaused, toggledStatus, withoutStatus, writeRunQuery } from "@/models/runQuery";
import { activeNode, boxOf, centredOn, edgeBox, factsAt, firstView, fitted, isDrawn, isInside, isTaken, nodeAt, nodesIn, zoomedAt } from "@/models/graph";
import { logLines, streamedText } from "@/models/emitted";
import { shownName } from "@/models/names";
import { nextMark, pageOf, recordAt } from "@/models/records";
import { type TimelineVisit, type Trial, axisOf, barsOf, canContinue, lengthOf, rowsOf, stateAt, stepShown, visitAt, withChanges } from "@/models/timeline";
import { editedWith, inputFields, valuesFrom } from "@/models/schemaForm";
import { changesBetween, schemaFor } from "@/models/state";
import { differenceText, lineKind, sidesOf, targetOf, writeTarget } from "@/models/diff";
import { objectIn, patchOf, treeOf } from "@/models/tree";
import { statusWord } from "@/words";

const at = (second: number): string => new Date(1_800_000_000_000 + second * 1000).toISOString();
const ms = (second: number): number => 1_800_000_000_000 + second * 1000;

function visit(node: string, from: number, to: number | null, more: Partial<TimelineVisit> = {}): TimelineVisit {
  const ended = to === null ? { state: "running", endedAt: null, seq: -1 } : { state: "done", endedAt: at(to), seq: to };
  return { node, name: node, scope: "", visit: 1, startedAt: at(from), waits: [], trials: [], attempts: 1, error: "", first: -1, ofSource: false, ...ended, ...more };
}

const trial = (reason: string, attempt: number, second: number, more: Partial<Trial> = {}): Trial => ({ reason, attempt, at: at(second), wakesAt: null, seq: second, error: "", ...more });

const fold = (within: string) => ({ within, visits: 2, items: 2, done: 2, failed: 0, open: 0 });
const boxAt = (id: string, y: number) => ({ id, label: id, shape: "task", x: 0, y, width: 100, height: 40, detail: "", inside: "" });

describe("the search of runs", () => {
  it("has its statuses in one word, and keeps every other word", () => {
    expect(statusesIn('status:failed,running flow:"my flow" time out')).toEqual(["failed", "running"]);
    expect(withoutStatus('status:failed flow:"my flow" created<2d time out')).toBe('flow:"my flow" created<2d time out');
    expect(toggledStatus("flow:claims", "failed")).toBe("status:failed flow:claims");
    expect(toggledStatus("status:failed status:running flow:claims", "failed")).toBe("status:running flow:claims");
    expect(toggledStatus("status:failed", "failed")).toBe("");
    expect(writeRunQuery({ status: ["failed", "running"], flow: "my flow" })).toBe('status:failed,running flow:"my flow"');
    expect(writeRunQuery({ status: [], flow: "" })).toBe("");
    expect(writeRunQuery({ status: [], flow: "claims", version: "v1", isPaused: true, error: "no \"account\"" })).toBe('flow:claims version:v1 error:"no \\"account\\"" at:breakpoint');
    expect([toggledPaused("flow:a"), toggledPaused("flow:a at:breakpoint"), isPausedIn("at:breakpoint")]).toEqual(["flow:a at:breakpoint", "flow:a", true]);
  });
});

describe("a timeline that is read on", () => {
  const old = [visit("read", 0, 1, { first: 0 }), visit("ask", 1, null, { first: 1 }), visit("pay", 9, null, { first: 2, scope: "x" })];
  it("replaces what changed, adds what is new, and keeps the order and the rest", () => {
    const now = withChanges(old, [visit("ask", 1, 5, { first: 1, visit: 2 }), visit("late", 4, 6, { first: 3 }), visit("end", 9, null, { first: 4 })]);
    expect(now.map((each) => [each.node, each.endedAt])).toEqual([["read", at(1)], ["ask", at(5)], ["late", at(6)], ["pay", null], ["end", null]]);
    expect(now[0]).toBe(old[0]);
    expect(withChanges(old, [])).toEqual(old);
    expect(withChanges([], old)).toEqual(old);
  });
  it("is read anew while a visit is open whose first record is not known", () => {
    expect([canContinue(old), canContinue([...old, visit("far", 0, 1)]), canContinue([...old, visit("far", 0, null)])]).toEqual([true, true, false]);
    expect(canContinue([visit("far", 0, 1, { ofSource: true })])).toBe(true);
  });
});

describe("the bars of a visit", () => {
  it("are one for each attempt, with the waits between", () => {
    const waits = [{ kind: "retry", since: at(2), until: at(5), about: "" }];
    const bars = barsOf(visit("pay", 0, 8, { waits, trials: [trial("retry", 2, 2, { wakesAt: at(5) }), trial("woke", 2, 5)] }), ms(9));
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
  it("never draw a wait as work, also if the clock of the page is behind", () => {
    const waits = [{ kind: "person", since: at(1), until: null, about: "Sure?" }];
    expect(barsOf(visit("ask", 1, null, { waits }), ms(0)).map((each) => each.kind)).toEqual(["wait"]);
  });
  it("have none for the time in which the run had failed", () => {
    const waits = [{ kind: "failed", since: at(2), until: at(900), about: "" }];
    const bars = barsOf(visit("pay", 0, 903, { waits, trials: [trial("resumed", 2, 900)] }), ms(999));
    expect(bars.map((each) => [each.kind, each.from, each.to, each.attempt])).toEqual([["attempt", ms(0), ms(2), 1], ["attempt", ms(900), ms(903), 2]]);
    expect(lengthOf(bars)).toBe(5000);
  });
  it("are one for each attempt, also for one that took no time", () => {
    const bars = barsOf(visit("pay", 3, 3, { trials: [trial("resumed", 2, 3)] }), ms(9));
    expect(bars.map((each) => [each.kind, each.attempt])).toEqual([["attempt", 1], ["attempt", 2]]);
  });
  it("are two if its worker died and another began again", () => {
    const bars = barsOf(visit("pay", 0, 9, { trials: [trial("restarted", 2, 6)] }), ms(9));
    expect(bars.map((each) => [each.to, each.attempt])).toEqual([[ms(6), 1], [ms(9), 2]]);
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
  it("of a fork's source had ended, whatever the record", () => {
    expect(stateAt(visit("read", 0, 9, { seq: -1, ofSource: true }), { seq: 0, at: at(1) })).toBe("done");
  });
  it("has nothing of what came later: no attempt, no error, no end", () => {
    const waits = [{ kind: "failed", since: at(3), until: at(8), about: "" }];
    const trials = [trial("retry", 2, 2, { error: "E: first" }), trial("resumed", 3, 8, { error: "E: second" })];
    const pay = visit("pay", 1, 9, { first: 1, seq: 9, waits, trials, attempts: 3, error: "E: third", state: "failed" });
    const seen = (seq: number) => visitAt(pay, { seq, at: at(seq) });
    expect(seen(0)).toBeNull();
    expect([seen(1), seen(2), seen(3), seen(9)].map((each) => [each!.state, each!.attempts, each!.error, each!.endedAt])).toEqual([
      ["running", 1, "", null], ["running", 2, "", null], ["failed", 2, "E: second", at(3)], ["failed", 3, "E: third", at(9)],
    ]);
    const asks = visit("ask", 1, 9, { first: 1, waits: [{ kind: "person", since: at(1), until: at(5), about: "" }] });
    expect([1, 5].map((seq) => stateAt(asks, { seq, at: at(seq) }))).toEqual(["asking", "running"]);
    expect(visitAt(asks, { seq: 1, at: at(1) })!.waits[0]!.until).toBeNull();
  });
  it("began with its record, also if two records have one time", () => {
    const [asked, read] = [visit("ask", 5, 9, { first: 5 }), { seq: 4, at: at(5) }];
    expect(stateAt(asked, read)).toBe("later");
  });
});

describe("the records", () => {
  const records = { first: 2, last: 9 };
  it("are from the first that is not pruned to the last, in pages", () => {
    expect([pageOf(0), pageOf(199), pageOf(200)]).toEqual([0, 0, 200]);
    expect([recordAt(records, undefined), recordAt(records, 0), recordAt(records, 5), recordAt(records, 50)]).toEqual([9, 2, 5, 9]);
  });
  it("have marks to jump to", () => {
    const marks = [4, -1, 8].map((seq) => ({ kind: "failed", seq, at: "", node: "", worker: "" }));
    expect([nextMark(marks, 3, 1)?.seq, nextMark(marks, 8, -1)?.seq, nextMark(marks, 8, 1)]).toEqual([4, 4, null]);
  });
});

describe("the name of a node", () => {
  it("has the number of its item", () => {
    expect(["pay", "each.1[110]/fetch", "each.2[3]/send.1~2[0]/pay", "odd/pay"].map(shownName)).toEqual(["pay", "each[110]/fetch", "each.2[3]/send[0]/pay", "odd/pay"]);
  });
});

describe("the rows", () => {
  const make = (node: string, inside: ReturnType<typeof fold> | null = null) => ({ node, inside });
  const top = [make("read"), make("prices", fold("prices.1")), make("pay")];
  const inner = new Map([["prices.1", [make("a"), make("b", fold("prices.1[0]/b.1"))]]]);
  it("show what is inside of a map where it is opened and read", () => {
    const names = (open: string[]) => rowsOf(top, new Set(open), inner).map((row) => `${row.depth} ${row.visit.node}`);
    expect(names([])).toEqual(["0 read", "0 prices", "0 pay"]);
    expect(names(["prices.1", "prices.1[0]/b.1"])).toEqual(["0 read", "0 prices", "1 a", "1 b", "0 pay"]);
    expect(rowsOf(top, new Set(["prices.1"]), new Map())).toHaveLength(3);
  });
  it("of 10,000 visits are made without delay", () => {
    const many = Array.from({ length: 10_000 }, (_, place) => ({ ...visit(`n${place}`, place, place + 1), inside: null }));
    expect(rowsOf(many, new Set(), new Map())).toHaveLength(10_000);
    expect(axisOf(many.flatMap((each) => barsOf(each, 0))).cuts).toEqual([]);
  });
});

describe("the graph", () => {
  const nodes = [boxAt("read", 0), boxAt("prices", 100), boxAt("pay", 200)];
  const edge = { id: "read->prices", source: "read", target: "prices", label: "", look: "plain", path: "M50 40L50 100", x: 10, y: 5, headX: 60, headY: 105, labelX: 0, labelY: 0 };
  const inside = { within: "prices.1", visits: 4, items: 4, done: 3, failed: 0, open: 1 };
  const visits = [
    { ...visit("read", 0, 1), path: "read", inside: null },
    { ...visit("prices", 1, null), path: "prices", inside },
    { ...visit("prices.1[0]/pay", 1, 2, { state: "failed" }), path: "prices/pay", inside: null },
  ];
  it("has the state, the visits and the items of each node", () => {
    const facts = factsAt(visits, null, false);
    expect(facts.get("prices")).toEqual({ state: "running", visits: 1, items: 4, done: 3, seq: -1 });
    expect([...facts.keys()]).toEqual(["read", "prices", "prices/pay"]);
    expect([...factsAt(visits, null, true).keys()]).toEqual(["read", "prices", "pay"]);
    expect([...factsAt(visits, { seq: 0, at: at(0.5) }, false)].map(([id, fact]) => [id, fact.state])).toEqual([["read", "running"]]);
  });
  it("has edges that were taken once both ends had begun", () => {
    const facts = factsAt(visits, null, false);
    expect(isTaken(edge, new Set(["read->prices"]), facts)).toBe(true);
    expect(isTaken(edge, new Set(), facts)).toBe(false);
    expect(isTaken({ ...edge, target: "pay" }, new Set(["read->prices"]), facts)).toBe(false);
    expect(isTaken({ ...edge, id: "", source: "__START__" }, new Set(), facts)).toBe(true);
  });
  it("follows what needs a look, else what ended last", () => {
    expect(activeNode(nodes, factsAt(visits, null, false))).toBe("prices");
    expect(activeNode(nodes, factsAt(visits.slice(0, 1), null, false))).toBe("read");
  });
  it("is moved and zoomed around a place, and only what is in view is drawn", () => {
    const view = { x: 0, y: 0, zoom: 1 };
    const size = { width: 200, height: 120 };
    expect(nodesIn(nodes, boxOf(view, size)).map((each) => each.id)).toEqual(["read", "prices"]);
    const near = zoomedAt(view, 2, { x: 50, y: 20 });
    expect([near.x, near.y, near.zoom]).toEqual([25, 10, 2]);
    expect(isInside(nodes[2]!, boxOf(centredOn(nodes[2]!, view, size), size))).toBe(true);
    expect(fitted({ width: 2000, height: 100 }, size).zoom).toBeCloseTo(0.076);
    expect(firstView({ width: 2000, height: 100 }, size).zoom).toBe(0.6);
    expect(edgeBox(edge)).toEqual({ left: 60, top: 45, right: 60, bottom: 105 });
    expect([isDrawn(301, 1), isDrawn(10, 0.39), isDrawn(300, 0.4)]).toEqual([true, true, false]);
    expect(nodeAt(nodes, 10, 110)?.id).toBe("prices");
  });
});

describe("the live output of a step", () => {
  it("is its text, and its lines of log", () => {
    const pieces = [{ kind: "text", at: "", data: "Dear ", attempt: 1 }, { kind: "log", at: "a", data: { level: "INFO", text: "read" }, attempt: 1 }, { kind: "text", at: "", data: "Ann", attempt: 1 }];
    expect(streamedText(pieces, 1)).toBe("Dear Ann");
    expect(logLines(pieces)).toEqual([{ at: "a", level: "INFO", text: "read", attempt: 1 }]);
  });
  it("is that of the last attempt, and the lines of all", () => {
    const pieces = [{ kind: "text", at: "", data: "Dead", attempt: 1 }, { kind: "log", at: "a", data: "read", attempt: 1 }, { kind: "text", at: "", data: "Dear", attempt: 2 }];
    expect(streamedText(pieces, 2)).toBe("Dear");
    expect(logLines(pieces)).toHaveLength(1);
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
  it("looks at each change once, however many rows it has", () => {
    let looks = 0;
    const changes = Array.from({ length: 300 }, (_, place) => ({ kind: "changed" as const, before: 0, after: 1, get path() { looks += 1; return `list${place}.inner.x`; } }));
    const many = Object.fromEntries(changes.map((_, place) => [`list${place}`, { inner: { x: 1 } }]));
    const rows = treeOf(many, { ...view, changes });
    expect(looks).toBe(300);
    expect(rows.filter((row) => row.change === "inside")).toHaveLength(600);
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

describe("a state as fields", () => {
  it("gives back the same state, whatever its values are", () => {
    const state = { name: "Ann", empty: "", paid: false, amount: 1.5, number: 12345678901234567890n, tags: ["a", "b"], lines: [{ what: "Glass" }], mixed: [1, "x"], none: null, of: { city: "Kiel", deep: { x: 1 } }, nothing: {} };
    const fields = inputFields(schemaFor(state), state);
    expect(fields.map((each) => [each.field, each.section.kind])).toEqual(expect.arrayContaining([["name", "text"], ["paid", "boolean"], ["amount", "number"], ["tags", "table"], ["lines", "json"], ["of.city", "text"]]));
    const values = valuesFrom(fields, state);
    expect(editedWith(fields, values, state)).toEqual(state);
    expect(editedWith(fields, { ...values, name: "", tags: [], amount: "" }, state)).toEqual({ ...state, name: "", tags: [], amount: null });
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

describe("a comparison", () => {
  it("is between records of one run, or of two, as the address has them", () => {
    expect(targetOf(12, "a")).toEqual({ run: "a", record: 12 });
    expect(targetOf("b@3", "a")).toEqual({ run: "b", record: 3 });
    expect(targetOf("b", "a")).toEqual({ run: "b", record: undefined });
    for (const to of [12, "b@3", "b"]) expect(writeTarget(targetOf(to, "a"), "a")).toBe(to);
    expect(sidesOf("a", undefined, undefined, 2)).toEqual({ from: 2, to: { run: "a", record: undefined }, isReverse: false });
    expect(sidesOf("a", 5, "b", 2)).toEqual({ from: 5, to: { run: "b", record: undefined }, isReverse: false });
  });
  it("shows what a fork changed in its source", () => {
    expect(sidesOf("a", undefined, undefined, 2, "source")).toEqual({ from: undefined, to: { run: "source", record: undefined }, isReverse: true });
    expect(sidesOf("a", 5, "source@4", 2, "source")).toEqual({ from: 5, to: { run: "source", record: 4 }, isReverse: true });
    expect(sidesOf("a", 5, 3, 2, "source")).toEqual({ from: 5, to: { run: "a", record: 3 }, isReverse: false });
  });
  it("marks lines and writes differences", () => {
    expect(["@@ -1 +1 @@", "-a", "+b", " c", "… and 3 lines more"].map(lineKind)).toEqual(["place", "removed", "added", "same", "place"]);
    expect([differenceText(1, 3), differenceText(3, 1), differenceText(2, 2), differenceText(0, 0.01234, 4)]).toEqual(["+2", "−2", "", "+0.0123"]);
  });
});

describe("the status of a run", () => {
  it("says that no live worker can serve it", () => {
    const run = { status: "pending", machineWaits: [], asks: false, answered: false, missing: ["backend:reviewer"] };
    expect(statusWord(run).word).toBe("Waiting for a worker");
    expect(statusWord({ ...run, missing: [] }).word).toBe("Queued");
  });
  it("is queued once the answer is recorded", () => {
    const run = { status: "pending_input", machineWaits: [], asks: true, answered: false, missing: [] };
    expect(statusWord(run).word).toBe("Waiting for input");
    expect(statusWord({ ...run, asks: false, answered: true }).word).toBe("Queued");
  });
});
