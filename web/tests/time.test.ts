import { describe, expect, it } from "vitest";
import { duration, exactTime, roughly, shortTime } from "@/models/time";

const MIN = 60_000;

describe("times", () => {
  it.each([
    [0, "0 ms"], [999, "999 ms"], [1000, "1 s"], [61_000, "1 min 1 s"], [5 * MIN, "5 min"],
    [239 * MIN, "3 h 59 min"], [47 * 60 * MIN, "2 days"], [24 * 60 * MIN, "1 day"],
  ])("%i ms is %s", (ms, text) => expect(duration(ms)).toBe(text));
  it.each([[10_000, "now"], [-90 * MIN, "1 h"], [59 * MIN, "59 min"], [40 * 60 * MIN, "2 days"]])(
    "%i ms is roughly %s", (ms, text) => expect(roughly(ms)).toBe(text),
  );
  it("names the year only of another year", () => {
    const at = new Date("2026-11-16T03:38:00Z");
    expect(shortTime(at, new Date("2026-01-01T00:00:00Z"), "UTC")).toBe("16 Nov 03:38");
    expect(shortTime(at, new Date("2027-06-01T00:00:00Z"), "UTC")).toBe("16 Nov 2026 03:38");
  });
  it("says the exact time in UTC too", () => {
    expect(exactTime(new Date("2026-11-16T03:38:00Z"), "Europe/Berlin")).toMatch(/04:38:00.*\(2026-11-16T03:38:00Z\)/);
  });
});
