import { afterEach, describe, expect, test, vi } from "vitest";
import { eventWord } from "../src/screens/runs/text";

describe("a text with many names", () => {
  afterEach(() => {
    vi.doUnmock("yaml");
    vi.resetModules();
  });

  test("is not compared name by name, and a name that is there twice is still found", async () => {
    // Other files have loaded both already.
    vi.resetModules();
    vi.doMock("yaml", async (original) => {
      const found = await original<typeof import("yaml")>();
      return { ...found, parseDocument: vi.fn(found.parseDocument) };
    });
    const { parseDocument } = await import("yaml");
    const { readText } = await import("../src/models/documentText");
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
