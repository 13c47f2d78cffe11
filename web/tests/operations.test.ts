import { describe, expect, it } from "vitest";
import { CHARTS, DURATION_STEPS, axisWidth, columnOf, dataOf, isEmpty, latest, spanOf, timeTick, valueText, windowOf } from "@/screens/operations/charts";
import { auditWindow, auditWords } from "@/models/auditFilter";
import { setFormats } from "@/models/time";
import { noticeStateOf } from "@/screens/operations/notices";
import { countOf, leaseWord, panelOf, scheduleWord, shareOf, tokenWord, workerWord } from "@/screens/operations/panels";
import type { Lease, Schedule, Token, Worker } from "@/services/operations";

const worker = (alive: boolean, draining: boolean) => workerWord({ alive, draining } as Worker).word;
const schedule = (given: Partial<Schedule>) => scheduleWord({ paused: false, over: false, trouble: "", ...given } as Schedule).word;
const at = (hour: number) => new Date(Date.UTC(2026, 10, 16, hour)).toISOString();
const token = (status: string) => tokenWord({ status } as Token).word;

describe("panels of Operations", () => {
  it("knows its panels by their addresses", () => {
    expect(panelOf(undefined)).toBe("workers");
    expect(panelOf("audit")).toBe("audit");
    expect(panelOf("toString")).toBeNull();
  });

  it("counts what is worth a look", () => {
    const lane = { lane: "default", ready: 2, running: 9, inLine: 3, oldestSeconds: 1 };
    const figures = { lanes: [lane], unserved: [], dead: 4, noticesDead: 1 };
    expect(["backlog", "dead", "notifications", "audit"].map((name) => countOf(panelOf(name) ?? "workers", figures))).toEqual([5, 4, 1, 0]);
    expect(countOf("dead", undefined)).toBe(0);
  });

  it("draws a bar for whatever is more than nothing", () => {
    expect([shareOf(0, 9), shareOf(1, 1000), shareOf(5, 10), shareOf(3, 0)]).toEqual([0, 2, 50, 0]);
  });

  it("has a word for each state", () => {
    expect([worker(true, false), worker(true, true), worker(false, true)]).toEqual(["Alive", "Draining", "Not seen"]);
    expect([schedule({}), schedule({ trouble: "no flow" }), schedule({ over: true }), schedule({ paused: true, over: true })]).toEqual([
      "On", "Error", "Ended", "Paused",
    ]);
    expect([true, false].map((expired) => leaseWord({ expired } as Lease).word)).toEqual(["Expired", "Held"]);
    expect(["active", "expired", "revoked", "newer"].map(token)).toEqual(["Active", "Expired", "Revoked", "newer"]);
  });
});

describe("filters of the audit", () => {
  it("are in the address only where they are filled in", () => {
    expect(auditWords({ q: " Nordwerk ", actor: "", action: "  ", until: "2026-11-16T10:00" })).toEqual({ q: "Nordwerk", until: "2026-11-16T10:00" });
  });

  it("have instants for the times of the reader's zone, and none for what is no time", () => {
    setFormats("Europe/Berlin", null);
    expect(auditWindow({ q: "x", since: "2026-11-16T10:00", until: "yesterday" })).toEqual({
      text: "x", actor: "", action: "", since: "2026-11-16T09:00:00.000Z", until: null,
    });
    setFormats(null, null);
  });
});

describe("charts of Operations", () => {
  const terms = CHARTS[0]!;
  const metric = {
    columns: ["p50", "p95", "count"],
    points: [{ at: at(1), values: [60, 90, 2] }, { at: at(2), values: [null, null, 0] }],
    readSince: null,
  };

  it("asks for whole steps up to the one that is not over", () => {
    const now = Date.UTC(2026, 10, 16, 10, 20);
    expect(windowOf("day", now).to.toISOString()).toBe("2026-11-16T11:00:00.000Z");
    expect(windowOf("week", now).to.toISOString()).toBe("2026-11-16T12:00:00.000Z");
    expect(windowOf("month", now).from.toISOString()).toBe("2026-10-18T00:00:00.000Z");
    expect([spanOf(undefined), spanOf("week"), spanOf("toString")]).toEqual(["day", "week", "day"]);
  });

  it("leaves room for the longest text of the axis, and has steps of whole minutes", () => {
    expect(axisWidth(["0", "16 min 40 s"])).toBeGreaterThanOrEqual(90);
    expect(axisWidth([])).toBe(40);
    expect(DURATION_STEPS.filter((each) => each > 60 && each % 60 !== 0)).toEqual([]);
  });

  it("draws the columns that are lines, and says all", () => {
    expect(dataOf(terms, metric)).toEqual([[Date.parse(at(1)) / 1000, Date.parse(at(2)) / 1000], [60, null], [90, null]]);
    expect(latest(terms, metric)).toBe("Median 1 min, 95th percentile 1 min 30 s, Decisions 0");
    expect(valueText(terms, "count", 1200)).toBe("1,200");
    const zeros = { ...metric, points: [{ at: at(1), values: [5, 0, 2] }] };
    expect(dataOf(terms, zeros)).toEqual([[Date.parse(at(1)) / 1000], [5], [null]]);
  });

  it("names hours of a day, and days of a longer time", () => {
    const seconds = Date.parse(at(13)) / 1000;
    expect([timeTick(seconds, 86_400, "UTC"), timeTick(seconds, 7 * 86_400, "UTC")]).toEqual(["13:00", "16 Nov"]);
  });

  it("says that nothing was measured, and takes a column that is missing for unknown", () => {
    expect(isEmpty(terms, metric)).toBe(false);
    expect(isEmpty(terms, { ...metric, points: [{ at: at(1), values: [null, null, 0] }] })).toBe(true);
    expect(columnOf(metric, "p99")).toEqual([null, null]);
  });

  it("knows the states of notifications", () => {
    expect([noticeStateOf(undefined), noticeStateOf("sent"), noticeStateOf("lost")]).toEqual(["failed", "sent", "failed"]);
  });
});
