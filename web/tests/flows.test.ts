import { describe, expect, it } from "vitest";
import { failedNode, groupsOf, nodeFacts, quantile } from "@/screens/flows/failures";
import { besideFields, faultsIn, inputFields, inputFrom, inputFromText, valuesFrom } from "@/screens/flows/inputForm";
import { matches, versionIn, versionName } from "@/screens/flows/versions";
import type { Flow, FlowRun, NodeVisit } from "@/services/flows";

const words = { perLine: "One per line." };
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
const fields = inputFields(schema, words);
const kinds = Object.fromEntries(fields.map((each) => [each.field, each.section.kind]));

describe("the fields of an input", () => {
  it("are those of the schema, required ones first", () => {
    expect(fields.slice(0, 2).map((each) => each.field)).toEqual(["number", "address.city"]);
    expect(kinds).toMatchObject({
      due: "date", extra: "json", insured: "boolean", number: "text", pieces: "integer", price: "text", speed: "select",
      tags: "textarea", sizes: "textarea", lines: "table", "address.city": "text", loop: "json",
    });
    expect(fields.filter((each) => each.section.required).map((each) => each.field)).toEqual(["number", "address.city"]);
    expect(fields.find((each) => each.field === "address.zip")!.section.label).toBe("Address › Zip");
  });

  it("are none where anything is accepted", () => {
    expect(inputFields({ type: "object" }, words)).toEqual([]);
    expect(inputFields(null, words)).toEqual([]);
  });

  it("and the JSON are the same value, with what no field shows", () => {
    const value = {
      due: "2026-01-02", extra: { a: [1] }, insured: true, number: "7", pieces: 3, price: "0.10", speed: 2, tags: ["x", "y"], sizes: [1, 2],
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
    expect(inputFrom(fields, { ...first, label: "", tags: "" }, {})).toMatchObject({ label: "", tags: [] });
  });

  it("name what is missing, what is no JSON and what would lose digits", () => {
    const values = { ...valuesFrom(fields, null), extra: "{", pieces: "9007199254740993" };
    expect(faultsIn(fields, values)).toEqual({ number: "missing", "address.city": "missing", extra: "notJson", pieces: "tooLarge" });
  });

  it("keep a name that is special in JavaScript", () => {
    const own = inputFields(JSON.parse('{"properties": {"__proto__": {"type": "string"}, "a.b": {"type": "string"}}}'), words);
    const found = inputFrom(own, Object.fromEntries(own.map((each) => [each.field, "x"])), {});
    expect(JSON.stringify(found)).toBe('{"__proto__":"x","a.b":"x"}');
  });
});

describe("the JSON view", () => {
  it("takes objects only, and loses no digit", () => {
    expect(inputFromText(' {"a": 1}').value).toEqual({ a: 1 });
    expect(inputFromText("").value).toEqual({});
    expect(inputFromText("[1]").fault).toBe("notObject");
    expect(inputFromText("{").fault).toBe("notObject");
    expect(inputFromText('{"a": [12345678901234567890]}').fault).toBe("tooLarge");
  });
});

const run = (id: string, error: string): FlowRun => ({
  id, error, version: "g1", status: "failed", startedBy: "", createdAt: "", endedAt: null, wakesAt: null,
});
const visit = (node: string, state: string, took: number | null, attempts = 1, of = "r1"): NodeVisit => ({ node, run: of, state, attempts, took, error: "" });

describe("failures", () => {
  it("are grouped by error, the most frequent first", () => {
    const groups = groupsOf([run("1", "a"), run("2", "b"), run("3", "b")]);
    expect(groups.map((each) => [each.error, each.runs.map((same) => same.id)])).toEqual([["b", ["2", "3"]], ["a", ["1"]]]);
  });

  it("have a node, and nodes have times, retries and the runs that failed there", () => {
    const visits = [visit("read", "done", 10), visit("send.1[0]/pay", "failed", 20, 3), visit("send.1[1]/pay", "done", 40), visit("send.1[2]/pay", "running", null, 1, "r2")];
    expect(failedNode(visits)).toBe("send.1[0]/pay");
    expect(failedNode([])).toBe("");
    expect(nodeFacts(visits)).toEqual([
      { node: "read", visits: 1, failed: 0, failedRuns: [], retries: 0, p50: 10, p95: 10 },
      { node: "send/pay", visits: 3, failed: 1, failedRuns: ["r1"], retries: 2, p50: 20, p95: 40 },
    ]);
    expect(quantile([], 0.5)).toBeNull();
  });
});

describe("versions", () => {
  const base = { createdAt: "", nodes: 1, isLoaded: true, workers: 1, isDocument: false };
  const flow: Flow = {
    name: "größe/eins",
    description: "Sends parcels",
    schema: {},
    versions: [{ ...base, id: "g1-abcdefghijkl", label: "", isCurrent: false }, { ...base, id: "g1-b", label: "1.2", isCurrent: true }],
  };
  it("are found by id and label; else the current one is meant", () => {
    expect(versionIn(flow, "g1-abcdefghijkl")!.id).toBe("g1-abcdefghijkl");
    expect(versionIn(flow, "1.2")!.id).toBe("g1-b");
    expect(versionIn(flow, undefined)!.id).toBe("g1-b");
    expect(flow.versions.map(versionName)).toEqual(["g1-abcdefgh", "1.2"]);
    expect(versionName({ id: "canvas-0123456789", label: "" })).toBe("canvas-01234567");
  });
  it("a search looks for every word in name and description", () => {
    expect(matches(flow, "GRÖSSE")).toBe(false);
    expect(matches(flow, "größe parcels")).toBe(true);
    expect(matches(flow, "")).toBe(true);
  });
});
