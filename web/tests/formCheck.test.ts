import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { isMapping } from "@/models/conditionValues";
import { isExact, numberOf, readJson, writeJson } from "@/models/json";
import { checkAnswer } from "@/models/formCheck";
import { isMatch } from "@/models/pattern";
import { plainText } from "@/models/values";

type Case = {
  sections: Record<string, unknown>[]; allow_extra?: boolean; decision: string | null; data: unknown;
  errors: [string, string, string][]; edited: string[]; values: unknown;
};
const corpus = readJson(readFileSync(new URL("formCorpus.json", import.meta.url), "utf8")) as { context: unknown; visible: [string, string][]; cases: Case[] };

/** Long texts and lists are written as what makes them. */
function whole(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(whole);
  if (!isMapping(value)) return value;
  if (typeof value["times"] === "number") {
    const made = value["repeat"];
    return typeof made === "string" ? made.repeat(value["times"]) : Array.from({ length: value["times"] }, () => (made as unknown[])[0]);
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, whole(each)]));
}

const numbers = (value: unknown) => readJson(writeJson(value));

describe("the server's corpus", () => {
  it("has at least 400 cases", () => expect(corpus.cases.length).toBeGreaterThanOrEqual(400));
  it.each(corpus.cases.map((each, place) => [place, writeJson(each.sections[0]).slice(0, 100), writeJson(each.data).slice(0, 80), each] as const))(
    "%i %s %s",
    (_place, _field, _data, each) => {
      const found = checkAnswer(each, corpus.context, each.decision, whole(each.data));
      expect(found.errors.map(({ field, code, message }) => [field, code, message])).toEqual(each.errors);
      if (each.errors.length > 0) return;
      expect(found.edited).toEqual(each.edited);
      expect(numbers(found.values)).toEqual(numbers(whole(each.values)));
    },
  );
});

it.each(corpus.visible)("shows what is not seen as the server does: %j", (text, shown) => expect(plainText(text)).toBe(shown));

describe("numbers without loss", () => {
  it.each(['{"a":9007199254740993,"b":[-12345678901234567890,1.5,"9007199254740993"]}', "9007199254740993", '"\\u0000x:1"', "0.1"])("%s is written as it was read", (text) =>
    expect(writeJson(readJson(text))).toBe(text));
  it("leaves a text alone that looks like a number or has quotes", () =>
    expect(readJson('{"a":"say \\"9007199254740993\\" 9007199254740993"}')).toEqual({ a: 'say "9007199254740993" 9007199254740993' }));
  it("reads what people type", () => {
    expect([numberOf("12"), numberOf("9007199254740993"), numberOf("-.5"), numberOf("1e999"), numberOf("x"), numberOf("")])
      .toEqual([12, 9007199254740993n, -0.5, null, null, null]);
    expect([isExact("0.1"), isExact("1.50"), isExact("0.12345678901234567890"), isExact("12345678901234567890"), isExact("x")])
      .toEqual([true, true, false, true, true]);
  });
});

describe("patterns", () => {
  it.each(["(?i)a", "[[:alpha:]]", "a++", "\\pL", "[]a]", "(?P>x)", "a{,3}", "\\"])("%s is left to the server", (pattern) =>
    expect(isMatch(pattern, "a")).toBeNull());
});
