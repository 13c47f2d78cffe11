import { describe, expect, it } from "vitest";
import {
  INSTRUCTIONS, type Form, answerData, commentFor, editedFields, fieldAt, firstValues, formOf, isEdited, reviewOf, valueOf,
} from "@/models/form";
import { errorsByField } from "@/models/typed";

const schema = {
  "x-form": {
    sections: [
      { type: "context", content: "Read **this**" },
      { type: "input", field: "total", kind: "currency", currency: "EUR", default: "646.00", required: true, confidence: 0.62 },
      { type: "input", field: "count", kind: "integer", default: 2 },
      { type: "input", field: "why", kind: "textarea", visible_if: "decision == 'reject'", required_if: "decision == 'reject'" },
      { type: "input", field: "fixed", kind: "text", default: "x", readonly: true },
      { type: "input", field: "lines", kind: "table", columns: ["what", { field: "pieces", kind: "integer" }] },
      { type: "input", field: "odd", kind: "hologram" },
      { type: "decision", options: ["book", "reject"] },
      { type: "decision", field: "second", options: [{ id: "a", label: "A" }] },
    ],
  },
};
const form = formOf(schema, {});
const asked = (values: Record<string, unknown>, decision: string | null = "book") => ({ values, decision, context: {} });
const field = (name: string, of: Form = form) => of.sections.find((each) => each.field === name)!;

describe("a form of sections", () => {
  it("leaves the first decision to the buttons and shows an unknown kind as text", () => {
    expect(form.sections.map((each) => each.kind)).toEqual(["text", "currency", "integer", "textarea", "text", "table", "text", "radio"]);
    expect(field("total").confidence).toBe(0.62);
    expect(field("second")).toMatchObject({ kind: "radio", options: [{ id: "a", label: "A" }] });
  });
  it("asks for a field by the decision", () => {
    expect(reviewOf(form, asked({})).visible.has("why")).toBe(false);
    const { visible, required, readonly, errors } = reviewOf(form, asked({ total: "1" }, "reject"));
    expect([visible.has("why"), required.has("why"), readonly.has("fixed"), visible.has("context:0")]).toEqual([true, true, true, true]);
    expect(errors).toEqual({ why: "is missing", second: "is missing" });
  });
  it("answers with what is asked for, typed", () => {
    const values = { ...firstValues(form, { count: "3" }), lines: [{ what: "pen", pieces: "4" }, {}], second: "a" };
    expect(answerData(form, asked(values))).toEqual({
      total: "646.00", count: 3, lines: [{ what: "pen", pieces: 4 }], odd: null, second: "a",
    });
  });
  it("keeps a text that is no number, for the server to name", () => {
    expect(valueOf(field("count"), "many")).toBe("many");
    expect(valueOf(field("count"), " ")).toBeNull();
  });
  it("knows what was edited", () => {
    expect(isEdited(field("count"), "2")).toBe(false);
    expect(isEdited(field("count"), "3")).toBe(true);
    expect(isEdited(field("why"), "x")).toBe(false);
  });
});

it("leaves out what a condition hides or fixes, whatever was typed there", () => {
  const odd = formOf({ "x-form": { sections: [
    { type: "input", field: "a", default: "x", readonly_if: "decision == 'book'" },
    { type: "input", field: "b", visible_if: "a == 'y'", required: true },
    { type: "context", content: "only then", visible_if: "a == 'y'" },
  ] } }, {});
  expect(reviewOf(odd, asked({ a: "y", b: "typed" }))).toMatchObject({ errors: {}, data: {}, visible: new Set(["a"]) });
  expect(reviewOf(odd, asked({ a: "y", b: "" }, "no"))).toMatchObject({ errors: { b: "is missing" }, visible: new Set(["a", "b", "context:2"]) });
});

it("begins with the default and compares with what the machine proposed", () => {
  const both = formOf({ "x-form": { sections: [{ type: "input", field: "a", kind: "currency", currency: "EUR", default: "900.00", original: 1840 }] } }, {});
  expect(firstValues(both, {})).toEqual({ a: "900.00" });
  expect(both.sections[0]).toMatchObject({ proposal: 1840, previous: "900.00", hasPrevious: true });
  expect([isEdited(both.sections[0]!, "900"), isEdited(both.sections[0]!, "1,840"), editedFields(both, { a: "1,841" })]).toEqual([true, false, ["a"]]);
});

describe("arguments of a tool", () => {
  const tool = {
    properties: { arguments: { properties: { order: { type: "string" }, amount: { type: "number" }, mode: { type: "string", enum: ["a", "b"] }, more: {} } } },
  };
  const context = { tool: "refund", arguments: { order: "A17", amount: 250, mode: "a", note: "not in the schema", id: 9007199254740993n } };
  const call = formOf(tool, context);
  it("become fields, with a message to the agent", () => {
    expect(call.kind).toBe("arguments");
    expect(call.sections.map((each) => [each.field, each.kind])).toEqual([
      ["order", "text"], ["amount", "number"], ["mode", "select"], ["more", "json"], ["note", "text"], ["id", "json"], [INSTRUCTIONS, "textarea"],
    ]);
  });
  it("are found where their schema refers to", () => {
    const referring = {
      $defs: { mode: { enum: ["a", "b"] } },
      properties: { arguments: { $defs: { lines: { type: "array", items: { type: "string" } } }, properties: { mode: { $ref: "#/$defs/mode" }, lines: { $ref: "#/$defs/lines" } } } },
    };
    const found = formOf(referring, { tool: "x", arguments: { mode: "b", lines: ["c"] } });
    expect(found.sections.slice(0, 2).map((each) => [each.field, each.kind])).toEqual([["mode", "select"], ["lines", "table"]]);
  });
  it("are sent only if they were changed", () => {
    const values = firstValues(call, {});
    expect(answerData(call, asked(values))).toBeNull();
    expect(answerData(call, asked({ ...values, amount: "100", [INSTRUCTIONS]: " slowly " }, "approve"))).toEqual({
      arguments: { order: "A17", amount: 100, mode: "a", note: "not in the schema", id: 9007199254740993n }, modifications: { instructions: "slowly" },
    });
  });
  it("are checked by their schema, and a refused call needs none", () => {
    const values = { ...firstValues(call, {}), amount: "many", [INSTRUCTIONS]: "ask first" };
    expect(reviewOf(call, asked(values, "approve")).errors).toEqual({ amount: "'many' is not a number" });
    expect(reviewOf(call, asked(values, "reject"))).toMatchObject({ errors: {}, data: null });
    expect(commentFor(call, asked(values, "reject"), "no ")).toBe("no\nask first");
    expect(commentFor(call, asked(values, "approve"), "fine")).toBe("fine");
    expect(fieldAt(call, "amount[0].x")).toBe("amount");
  });
});

it("a schema without a form is one JSON field", () => {
  const data = formOf({ type: "object" }, {});
  expect(answerData(data, asked({ data: '{"a": 1}' }))).toEqual({ a: 1 });
  expect(answerData(formOf(null, {}), asked({}))).toBeNull();
});

describe("an answer with named parts", () => {
  const grant = {
    type: ["object", "null"],
    properties: { tokens: { title: "More tokens", type: "integer", minimum: 1 }, money: { type: ["number", "string"], pattern: "^[0-9.]+$" } },
    additionalProperties: false,
  };
  const found = formOf(grant, {});
  const review = (values: Record<string, unknown>) => reviewOf(found, { values, decision: "continue", context: {} });

  it("has a field for each, and is none where nothing was typed", () => {
    expect(found.sections.map((each) => [each.field, each.kind, each.label])).toEqual([["tokens", "integer", "More tokens"], ["money", "text", "Money"]]);
    expect(review({})).toMatchObject({ data: null, errors: {} });
    expect(review({ tokens: "5000" })).toMatchObject({ data: { tokens: 5000 }, errors: {} });
    expect(Object.keys(review({ tokens: "0" }).errors)).toEqual(["tokens"]);
    expect(errorsByField(found, [{ field: "tokens", message: "is too small" }])).toEqual({ tokens: "is too small" });
  });

  it("is written as JSON where fields cannot show it", () => {
    for (const free of [{ type: "object" }, { ...grant, anyOf: [{}] }]) expect(formOf(free, {}).sections.map((each) => each.kind)).toEqual(["json"]);
    const needed = formOf({ type: "object", properties: { why: { type: "string" } }, required: ["why"] }, {});
    expect(Object.keys(reviewOf(needed, { values: {}, decision: null, context: {} }).errors)).toEqual(["why"]);
  });
});
