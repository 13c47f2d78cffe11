import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { splitWords, withoutText, withoutWord } from "@/models/query";
import { readHoldQuery } from "@/models/queryHolds";
import { readRunQuery } from "@/models/queryRuns";

type Case = { of: "holds" | "runs"; query: string; read: unknown };
/** Made by the server's own reading (`python -m tests.web.query_corpus`). */
const { me, now, cases } = JSON.parse(readFileSync(new URL("queries.json", import.meta.url), "utf8")) as { me: string; now: string; cases: Case[] };
const READERS = { holds: readHoldQuery, runs: readRunQuery };

describe("a search", () => {
  it.each(["holds", "runs"] as const)("of %s is read as the server reads it", (of) => {
    const own = cases.filter((each) => each.of === of);
    expect(own.length).toBeGreaterThan(150);
    for (const { query, read } of own) expect({ query, read: shown(READERS[of](query, me, BigInt(now))) }).toEqual({ query, read });
  });
  it("loses one word, or its text", () => {
    expect(withoutWord('flow:a "two words" due<2d', "due<2d")).toBe('flow:a "two words"');
    expect(withoutText('flow:a "two words" due<2d', ["flow:a", "due<2d"])).toBe("flow:a due<2d");
    expect(splitWords(withoutWord('flow:a "say \\"hi\\" \\\\"', "flow:a"))).toEqual(['say "hi" \\']);
  });
});

function shown({ fields, text, words, wrong }: ReturnType<typeof readHoldQuery>): unknown {
  if (wrong) return { wrong };
  const plain = JSON.parse(JSON.stringify(fields, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value))) as unknown;
  return { fields: plain, text, words };
}
