import { describe, expect, it } from "vitest";
import { readJson } from "@/models/json";
import { objectIn } from "@/models/tree";
import { valueText } from "@/models/values";

describe("JSON", () => {
  it("keeps every digit of an integer, read, shown and written", () => {
    const text = '{"id":9007199254740993,"less":-123456789012345678901234567890,"plain":12,"half":0.5,"text":"9007199254740993"}';
    const found = readJson(text) as Record<string, unknown>;
    expect(valueText(found["id"])).toBe("9007199254740993");
    expect(valueText(found["less"])).toBe("-123456789012345678901234567890");
    expect(found["plain"]).toBe(12);
    expect(found["text"]).toBe("9007199254740993");
    // Where the engine can write it.
    if (typeof JSON.rawJSON === "function") expect(JSON.stringify(found)).toBe(text);
    expect(objectIn(text)).toEqual(found);
  });

  it("reads the rest as always", () => {
    const text = '["1234567890123456 \\" 1234567890123456", 1234567890123456.5, 1234567890123456e2, -0.1234567890123456789, "\\u0041"]';
    expect(readJson(text)).toEqual(JSON.parse(text));
    expect(() => readJson("1234567890123456789x")).toThrow(SyntaxError);
  });

  it("takes no key for a prototype", () => {
    const found = readJson('{"__proto__":{"isAdmin":true},"n":12345678901234567890}') as Record<string, unknown>;
    expect(Object.keys(found)).toEqual(["__proto__", "n"]);
    expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
    expect(found["isAdmin"]).toBeUndefined();
  });
});
