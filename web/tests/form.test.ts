import { describe, expect, it } from "vitest";
import {
  INSTRUCTIONS, type Form, answerData, firstValues, formOf, holds, isEdited, isReadonly, isRequired, isVisible, missingFields, valueOf,
} from "@/models/form";

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
    expect(field("second")).toMatchObject({ required: true, options: [{ id: "a", label: "A" }] });
  });
  it("asks for a field by the decision", () => {
    expect(isVisible(field("why"), asked({}))).toBe(false);
    expect(isVisible(field("why"), asked({}, "reject"))).toBe(true);
    expect(isRequired(field("why"), asked({}, "reject"))).toBe(true);
    expect(isReadonly(field("fixed"), asked({}))).toBe(true);
    expect(missingFields(form, asked({ total: "1" }, "reject"))).toEqual(["why", "second"]);
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

describe("conditions", () => {
  it.each([
    ["a == 'x'", true], ["a != 'x'", false], ["a == 'x' and b == true", true], ["context.kind == \"k\"", true], ["a == 'x' && b == false", false],
  ])("%s is %s", (text, expected) => expect(holds(text, { a: "x", b: true }, null, { kind: "k" })).toBe(expected));
  it.each(["a > 3", "a in ['x']", "", "__proto__"])("%s is not judged here", (text) => expect(holds(text, {}, null, {})).toBeNull());
});

describe("arguments of a tool", () => {
  const tool = {
    properties: { arguments: { properties: { order: { type: "string" }, amount: { type: "number" }, mode: { type: "string", enum: ["a", "b"] }, more: {} } } },
  };
  const context = { tool: "refund", arguments: { order: "A17", amount: 250, mode: "a" } };
  const call = formOf(tool, context);
  it("become fields, with a message to the agent", () => {
    expect(call.kind).toBe("arguments");
    expect(call.sections.map((each) => [each.field, each.kind])).toEqual([
      ["order", "text"], ["amount", "number"], ["mode", "select"], ["more", "json"], [INSTRUCTIONS, "textarea"],
    ]);
  });
  it("are sent only if they were changed", () => {
    const values = firstValues(call, {});
    expect(answerData(call, asked(values))).toBeNull();
    expect(answerData(call, asked({ ...values, amount: "100", [INSTRUCTIONS]: " slowly " }))).toEqual({
      arguments: { order: "A17", amount: 100, mode: "a" }, modifications: { instructions: "slowly" },
    });
  });
});

it("a schema without a form is one JSON field", () => {
  const data = formOf({ type: "object" }, {});
  expect(answerData(data, asked({ data: '{"a": 1}' }))).toEqual({ a: 1 });
  expect(answerData(formOf(null, {}), asked({}))).toBeNull();
});
