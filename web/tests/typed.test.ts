import { describe, expect, it } from "vitest";
import { formOf } from "@/models/form";
import { contentChanges, errorsByField, typedFields, typedText, withOwnChange } from "@/models/typed";

const sections = [
  { type: "input", field: "amount", kind: "currency", label: "Amount", default: "1840.00" },
  { type: "input", field: "account", kind: "select", options: ["4400"] },
  { type: "input", field: "lines", kind: "table", columns: [{ field: "pieces", kind: "integer" }] },
];
const form = formOf({ "x-form": { sections } }, {});

describe("what was typed", () => {
  it("is what differs from the proposal", () => {
    expect(typedFields(form, { amount: "1840.00", account: "", lines: [] })).toEqual([]);
    const found = typedFields(form, { amount: "900.00", account: "4400" });
    expect(found.map((each) => each.field)).toEqual(["amount", "account"]);
    expect(typedText(found, " late ")).toBe("Amount: 900.00\nAccount: 4400\nlate");
    expect(typedText([], "")).toBe("");
    const choices = formOf({ "x-form": { sections: [{ type: "input", field: "account", kind: "select", options: [{ id: "4400", label: "4400 Material" }] }] } }, {});
    expect(typedText(typedFields(choices, { account: "4400" }), "")).toBe("Account: 4400 Material");
  });
});

describe("errors of the server", () => {
  it("are shown at the field that holds them", () => {
    const faults = [
      { field: "amount", message: "is no amount" },
      { field: "lines[0].pieces", message: "is no number" },
      { field: "lines[1].pieces", message: "is missing" },
      { field: "", message: "is no object" },
    ];
    expect(errorsByField(form, faults)).toEqual({
      amount: "is no amount",
      lines: "lines[0].pieces: is no number lines[1].pieces: is missing",
      "": "is no object",
    });
  });
});

describe("a question that changed", () => {
  const before = {
    title: "Pay?", prompt: "Pay?", assignee: "kim", priority: "high", expiresAt: null,
    context: { amount: 1, lines: [1] }, options: [{ id: "yes", label: "Yes" }],
  };
  it("names each difference once", () => {
    expect(contentChanges(before, { ...before })).toEqual([]);
    const after = { ...before, title: "Pay now?", prompt: "Pay now?", assignee: "sam", context: { amount: 2, lines: [1] }, options: [{ id: "no", label: "" }] };
    expect(contentChanges(before, after).map((each) => [each.what, each.path, each.before, each.after])).toEqual([
      ["title", "", "Pay?", "Pay now?"],
      ["assignee", "", "kim", "sam"],
      ["options", "", "Yes", "no"],
      ["context", "amount", 1, 2],
    ]);
  });
});

describe("what the reader changed", () => {
  const read = { version: 1, title: "T", prompt: "P", assignee: "dana", priority: "high", expiresAt: null as string | null, context: {}, options: [] };
  const before = { ...read, version: 2, priority: "low" };
  const after = { ...before, version: 3, assignee: "kim" };

  it("is read, and what others changed before is not", () => {
    expect(contentChanges(withOwnChange(read, before, after), after).map((each) => each.what)).toEqual(["priority"]);
    expect(withOwnChange(before, before, after)).toEqual({ ...before, assignee: "kim" });
  });

  it("cannot be told from what others changed at the same time", () => {
    expect(withOwnChange(read, before, { ...after, version: 4 })).toBe(read);
  });
});
