import { describe, expect, it } from "vitest";
import { type Listed, type Trail, before, newest, rowsBefore, withChanges } from "@/models/list";

type Row = { id: string; version: number };
const row = (id: string, version = 1): Row => ({ id, version });
const listed = (...rows: Row[]): Listed<Row> => ({ pages: [{ rows, next: null }], fresh: new Set(), gone: new Set() });
const found = (...rows: Row[]) => new Map(rows.map((each) => [each.id, each]));

describe("a list that others change", () => {
  it("keeps every row in its place", () => {
    const next = withChanges(listed(row("a"), row("b")), ["a", "b", "c"], found(row("a", 2), row("c")), () => true);
    expect(next.pages[0]!.rows).toEqual([row("a", 2), row("b")]);
    expect([[...next.gone], [...next.fresh]]).toEqual([["b"], ["c"]]);
  });
  it("forgets a new row that left before it was shown, and takes back one that came again", () => {
    const old = { ...listed(row("a")), fresh: new Set(["c"]), gone: new Set(["a"]) };
    const next = withChanges(old, ["a", "c"], found(row("a", 3)), () => true);
    expect([[...next.gone], [...next.fresh]]).toEqual([[], []]);
  });
  it("does not count a row that only stands further down", () => {
    expect(withChanges(listed(), ["z"], found(row("z")), () => false).fresh.size).toBe(0);
  });
  it("never takes an older version for a newer one", () => {
    expect(withChanges(listed(row("a", 5)), ["a"], found(row("a", 4)), () => true).pages[0]!.rows).toEqual([row("a", 5)]);
    expect(newest(row("a", 5), row("a", 4)).version).toBe(5);
    expect(newest(row("a", 5), row("a", 6)).version).toBe(6);
    expect(newest(undefined, row("a")).version).toBe(1);
  });
});

it("knows what is above the first page that is kept", () => {
  const trail: Trail = new Map([["c1", { before: "", rows: 100 }], ["c2", { before: "c1", rows: 90 }]]);
  expect(rowsBefore(trail, "")).toBe(0);
  expect(rowsBefore(trail, "c1")).toBe(100);
  expect(rowsBefore(trail, "c2")).toBe(190);
  expect([before(trail, "c2"), before(trail, "c1"), before(trail, "")]).toEqual(["c1", "", null]);
});
