import { describe, expect, it } from "vitest";
import { between, chosenRows, commonOptions, reasonCounts, toggled } from "@/models/selection";

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
});
