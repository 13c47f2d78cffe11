import { describe, expect, it } from "vitest";
import { arm, merged, nextOf, stillArmed } from "@/models/decision";
import { changesBetween } from "@/models/state";
import { isRows, valueText } from "@/models/values";
import { pseudo } from "@/locales/text";

const shown = { hold: "h", version: 3, options: ["yes", "no"] };

describe("a decision by keys", () => {
  it("is armed by the digit of an option that is shown", () => {
    expect(arm(shown, 2)).toEqual({ hold: "h", version: 3, option: "no" });
    expect(arm(shown, 3)).toBeNull();
  });
  it("is disarmed by another hold, another version and an option that is gone", () => {
    const armed = arm(shown, 1);
    expect(stillArmed(armed, shown)).toEqual(armed);
    expect(stillArmed(armed, { ...shown, hold: "other" })).toBeNull();
    expect(stillArmed(armed, { ...shown, version: 4 })).toBeNull();
    expect(stillArmed(armed, { ...shown, options: ["no"] })).toBeNull();
    expect(stillArmed(null, shown)).toBeNull();
  });
  it("goes on to the next row, else to the one before", () => {
    expect(nextOf(["a", "b", "c"], "b")).toBe("c");
    expect(nextOf(["a", "b"], "b")).toBe("a");
    expect(nextOf(["a"], "x")).toBe("a");
    expect(nextOf([], "x")).toBeNull();
  });
  it("never replaces a newer row by an older one", () => {
    const rows = [{ id: "a", version: 2 }, { id: "b", version: 5 }];
    expect(merged(rows, { id: "b", version: 4 })).toEqual(rows);
    expect(merged(rows, { id: "a", version: 3 })[0]).toEqual({ id: "a", version: 3 });
  });
});

it("tells what changed between two states by path", () => {
  const before = { a: 1, b: { c: [1], d: "x" }, e: null };
  const after = { a: 1, b: { c: [1, 2], f: true }, e: null };
  expect(changesBetween(before, after)).toEqual([
    { path: "b.c", before: [1], after: [1, 2], kind: "changed" },
    { path: "b.d", before: "x", after: undefined, kind: "removed" },
    { path: "b.f", before: undefined, after: true, kind: "added" },
  ]);
  expect(changesBetween({ a: [1] }, { a: [1] })).toEqual([]);
});

it("shows values as texts and flat rows as tables", () => {
  expect(valueText({ amount: "9.00", currency: "EUR" })).toBe("9.00 EUR");
  expect(valueText(null)).toBe("–");
  expect(valueText({ a: 1 })).toBe('{"a":1}');
  expect(isRows([{ a: 1 }, { a: 2 }])).toBe(true);
  expect(isRows([{ a: 1 }, { b: 2 }])).toBe(false);
  expect(isRows([{ a: {} }])).toBe(false);
});

it("makes texts longer and leaves what ICU reads", () => {
  const made = pseudo("{count, plural, one {One row} other {# rows}} of {name}");
  expect(made).toContain("{count, plural, one {Öñé röw} other {# röws}} öf {name}");
  expect(pseudo("Inbox").length).toBeGreaterThanOrEqual(7);
});
