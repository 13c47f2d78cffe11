import { describe, expect, it } from "vitest";
import { besideFields, faultsOf, inputFields, inputFrom, inputFromText, reviewInput, valuesFrom } from "@/models/schemaForm";

const schema = {
  type: "object",
  properties: {
    due: { anyOf: [{ type: "null" }, { type: "string", format: "date" }], default: null },
    extra: { type: "object", additionalProperties: {}, default: {} },
    insured: { type: "boolean", default: false },
    number: { type: "string" },
    pieces: { type: "integer", default: 1 },
    price: { type: ["string", "number"], default: "0" },
    speed: { enum: ["normal", 2, null], default: "normal" },
    tags: { type: "array", items: { type: "string" }, default: ["new"] },
    sizes: { type: "array", items: { type: "integer" } },
    notes: { type: "array", items: { type: "object" } },
    lines: { type: "array", items: { $ref: "#/$defs/line" } },
    address: { type: "object", properties: { city: { type: "string" }, zip: { type: "string" } }, required: ["city"] },
    label: { type: "string", default: "A" },
    loop: { $ref: "#/$defs/loop" },
  },
  required: ["number", "address"],
  $defs: {
    line: { type: "object", properties: { what: { type: "string" }, pieces: { type: "integer" } } },
    loop: { $ref: "#/$defs/loop" },
  },
};
const fields = inputFields(schema);
const kinds = Object.fromEntries(fields.map((each) => [each.field, each.section.kind]));

describe("the fields of an input", () => {
  it("are those of the schema, in its order", () => {
    expect(fields.slice(0, 4).map((each) => each.field)).toEqual(["due", "extra", "insured", "number"]);
    expect(kinds).toMatchObject({
      due: "date", extra: "json", insured: "boolean", number: "text", pieces: "integer", price: "text", speed: "select",
      tags: "table", sizes: "table", lines: "table", notes: "table", "address.city": "text", loop: "json",
    });
    expect(fields.filter((each) => each.section.raw["required"]).map((each) => each.field)).toEqual(["number", "address.city"]);
    expect(fields.find((each) => each.field === "address.zip")!.section.label).toBe("Address › Zip");
  });

  it("say how a number is written with a point", () => {
    const { errors } = reviewInput(fields, { ...valuesFrom(fields, null), pieces: "646,5" });
    expect(errors["pieces"]).toBe("is not a number; write it with a decimal point, such as 646.5");
  });

  it("are none where anything is accepted", () => {
    expect(inputFields({ type: "object" })).toEqual([]);
    expect(inputFields(null)).toEqual([]);
  });

  it("and the JSON are the same value, with what no field shows", () => {
    const value = {
      due: "2026-01-02", extra: { a: [1] }, insured: true, number: "7", pieces: 3, price: "0.10", speed: 2, tags: ["x", "y"], sizes: [1, 2], notes: [{ a: 1 }, { b: [2] }],
      lines: [{ what: "Glass", pieces: 2 }], address: { city: "Köln", floor: 3 }, label: "B", loop: null, unknown: { deep: true },
    };
    const beside = besideFields(fields, value);
    expect(beside).toEqual({ address: { floor: 3 }, unknown: { deep: true } });
    expect(inputFrom(fields, valuesFrom(fields, value), beside)).toEqual({ ...value, loop: undefined });
  });

  it("leave out what is not given, and send what replaces a default", () => {
    const first = valuesFrom(fields, null);
    expect(inputFrom(fields, first, {})).toEqual({
      extra: {}, insured: false, pieces: 1, price: "0", speed: "normal", tags: ["new"], label: "A",
    });
    expect(inputFrom(fields, { ...first, label: "", tags: [{ item: "" }] }, {})).toMatchObject({ label: "", tags: [] });
  });

  it("name what is missing, what is no JSON and what does not fit, and lose no digit", () => {
    const values = { ...valuesFrom(fields, null), extra: "{", pieces: "9007199254740993", sizes: [{ item: "1" }, { item: "1.5" }], price: 3 };
    const { errors, required } = reviewInput(fields, values);
    expect(errors).toEqual({
      number: "is missing", "address.city": "is missing", extra: "is not JSON; look at its quotes, commas and brackets",
      sizes: "[1]: 1.5 is not an integer", price: "3 is not a string",
    });
    expect([...required]).toEqual(["number", "address.city"]);
    expect(inputFrom(fields, { ...values, sizes: [{ item: "12345678901234567890" }] }, {})).toMatchObject({ pieces: 9007199254740993n, sizes: [12345678901234567890n] });
  });

  it("are JSON where a value does not fit its field, so that it is not changed by looking at it", () => {
    const odd = { tags: ["two\nlines", ""], address: "Köln", lines: [{ other: 1 }], label: "x".repeat(100), insured: null };
    const found = inputFields(schema, odd);
    const shown = Object.fromEntries(found.map((each) => [each.field, each.section.kind]));
    expect(shown).toMatchObject({ tags: "json", address: "json", lines: "json", label: "textarea", insured: "boolean" });
    expect(inputFrom(found, valuesFrom(found, odd), besideFields(found, odd))).toMatchObject({ tags: odd.tags, address: "Köln", lines: odd.lines, label: odd.label });
  });

  it("have cells by kind in a table, also behind a reference", () => {
    const table = inputFields({ properties: { rows: { items: { $ref: "#/$defs/row" }, type: "array" } }, $defs: {
      row: { properties: { on: { type: "string", format: "date" }, size: { enum: ["s", "l"] }, n: { anyOf: [{ type: "integer" }, { type: "null" }] } }, required: ["on", "n"] },
    } })[0]!;
    expect(table.section.columns.map((each) => [each.field, each.kind, each.raw["required"]])).toEqual([["on", "date", true], ["size", "select", false], ["n", "integer", false]]);
  });

  it("keep a name that is special in JavaScript", () => {
    const own = inputFields(JSON.parse('{"properties": {"__proto__": {"type": "string"}, "a.b": {"type": "string"}}}'));
    const found = inputFrom(own, Object.fromEntries(own.map((each) => [each.field, "x"])), {});
    expect(JSON.stringify(found)).toBe('{"__proto__":"x","a.b":"x"}');
  });
});

describe("the JSON view", () => {
  it("takes objects only, and loses no digit", () => {
    expect(inputFromText(' {"a": 1}')).toEqual({ a: 1 });
    expect(inputFromText("")).toEqual({});
    expect(inputFromText("[1]")).toBeNull();
    expect(inputFromText("{")).toBeNull();
    expect(inputFromText('{"a": [12345678901234567890]}')).toEqual({ a: [12345678901234567890n] });
  });
});

describe("a state that is edited", () => {
  it("is refused for the fields that were changed to something wrong, not for what was there", () => {
    const before = { pieces: "1", number: "" };
    expect(Object.keys(faultsOf(fields, { ...before, pieces: "fifty" }, before))).toEqual(["pieces"]);
    expect(faultsOf(fields, { ...before, pieces: "50" }, before)).toEqual({});
    expect(faultsOf(fields, before, before)).toEqual({});
  });
});
