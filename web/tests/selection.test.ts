import { describe, expect, it } from "vitest";
import { between, chosenRows, commonOptions, outcomeGroups, reasonCounts, toggled } from "@/models/selection";

const yes = { id: "yes", label: "Yes", requiresComment: false };
const no = { id: "no", label: "No", requiresComment: true };

describe("a selection", () => {
  it("is toggled row by row, or by a range", () => {
    expect([...toggled(new Set(["a"]), "b")]).toEqual(["a", "b"]);
    expect([...toggled(new Set(["a", "b"]), "a")]).toEqual(["b"]);
    expect(between(["a", "b", "c", "d"], "c", "a")).toEqual(["a", "b", "c"]);
    expect(between(["a"], "a", "x")).toEqual([]);
  });
  it("offers what all of them offer", () => {
    expect(commonOptions([[yes, no], [no, yes]])).toEqual([yes, no]);
    expect(commonOptions([[yes, no], [{ ...no, label: "Never" }, yes]])).toEqual([yes]);
    expect(commonOptions([])).toEqual([]);
  });
  it("counts the reasons of those that are left out", () => {
    expect(reasonCounts([{ done: true, why: "" }, { done: false, why: "a" }, { done: false, why: "a" }])).toEqual([["a", 2]]);
  });
});

describe("chosen rows", () => {
  it("stay chosen after they have left the list", () => {
    const [a, b] = [{ id: "a" }, { id: "b" }];
    const seen = new Map([["a", a], ["b", b]]);
    expect(chosenRows(new Set(["a", "b"]), [b], seen)).toEqual([b, a]);
    expect(chosenRows(new Set(["a"]), [b], new Map())).toEqual([]);
    expect(chosenRows(new Set(["b"]), [a, b], seen)).toEqual([b]);
  });

  it("is previewed in groups with the same fate, what is done first and the largest group first", () => {
    const items = [
      { id: "1", done: false, texts: ["decided"] },
      { id: "2", done: true, texts: ["sent"] },
      { id: "3", done: true, texts: ["Runs again: pay.", "May happen outside once more."] },
      { id: "4", done: true, texts: ["Runs again: pay.", "May happen outside once more."] },
    ];
    expect(outcomeGroups(items).map(({ done, ids }) => [done, ids])).toEqual([[true, ["3", "4"]], [true, ["2"]], [false, ["1"]]]);
    expect(outcomeGroups([])).toEqual([]);
  });
});
