import { describe, expect, test, vi } from "vitest";
import { parseDocument } from "yaml";
import { readText } from "../src/models/documentText";
import { eventWord } from "../src/screens/runs/text";

vi.mock("yaml", async (original) => {
  const found = await original<typeof import("yaml")>();
  return { ...found, parseDocument: vi.fn(found.parseDocument) };
});

describe("a text with many names", () => {
  test("is not compared name by name, and a name that is there twice is still found", () => {
    vi.mocked(parseDocument).mockClear();
    expect(readText("a: 1\nb: {c: 1, d: 2}\n", "yaml").problem).toBeNull();
    expect(vi.mocked(parseDocument).mock.calls.map(([, options]) => (options as { uniqueKeys?: boolean }).uniqueKeys)).toEqual([false]);
    expect(readText("a: 1\nb:\n  c: 1\n  c: 2\n", "yaml")).toEqual({ data: null, problem: { message: "Map keys must be unique", line: 4, column: 3 } });
    expect(readText("a: {b: {x: 1}}\nc: {b: {x: 1}}\n", "yaml").problem).toBeNull();
  });
});

test("an event has its name of the catalogue, and one that is not known here its type in words", () => {
  const names = { "run.created": "Run created", "node.woke": "Timer fired", "new.kind.of_event": "New kind of event", toString: "ToString", "": "" };
  expect(Object.fromEntries(Object.keys(names).map((type) => [type, eventWord(type)]))).toEqual(names);
});
