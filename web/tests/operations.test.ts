import { describe, expect, it } from "vitest";
import { countOf, panelOf, scheduleWord, shareOf, tokenWord, workerWord } from "@/screens/operations/panels";
import { instantOf } from "@/screens/settings/instant";
import type { Schedule, Token, Worker } from "@/services/operations";

const worker = (alive: boolean, draining: boolean) => workerWord({ alive, draining } as Worker).word;
const schedule = (given: Partial<Schedule>) => scheduleWord({ paused: false, over: false, trouble: "", ...given } as Schedule).word;
const token = (status: string) => tokenWord({ status } as Token).word;

describe("panels of Operations", () => {
  it("knows its panels by their addresses", () => {
    expect(panelOf(undefined)).toBe("workers");
    expect(panelOf("audit")).toBe("audit");
    expect(panelOf("toString")).toBeNull();
  });

  it("counts what is worth a look", () => {
    const lane = { lane: "default", ready: 2, running: 9, inLine: 3, oldestSeconds: 1 };
    const figures = { lanes: [lane], unserved: [], dead: 4, noticesWaiting: 7, noticesDead: 1 };
    expect(["backlog", "dead", "notifications", "audit"].map((name) => countOf(panelOf(name) ?? "workers", figures))).toEqual([5, 4, 1, 0]);
    expect(countOf("dead", undefined)).toBe(0);
  });

  it("draws a bar for whatever is more than nothing", () => {
    expect([shareOf(0, 9), shareOf(1, 1000), shareOf(5, 10), shareOf(3, 0)]).toEqual([0, 2, 50, 0]);
  });

  it("has a word for each state", () => {
    expect([worker(true, false), worker(true, true), worker(false, true)]).toEqual(["Alive", "Draining", "Not seen"]);
    expect([schedule({}), schedule({ trouble: "no flow" }), schedule({ over: true }), schedule({ paused: true, over: true })]).toEqual([
      "On", "Trouble", "Ended", "Paused",
    ]);
    expect(["good", "expired", "revoked", "newer"].map(token)).toEqual(["Active", "Expired", "Revoked", "newer"]);
  });
});

describe("the time of an absence", () => {
  it("is an instant, or none", () => {
    expect(instantOf("")).toBeNull();
    expect(instantOf("2099-01-02T08:00")).toBe(new Date(2099, 0, 2, 8).toISOString());
  });
});
