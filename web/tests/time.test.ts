import { afterEach, describe, expect, it } from "vitest";
import { localText, offsetText } from "@/models/formMoment";
import { sectionOf } from "@/models/formSection";
import { valueOf } from "@/models/formTyped";
import { clock, duration, exactTime, instantOf, roughly, setFormats, shortTime, withShortTimes } from "@/models/time";

const MIN = 60_000;

describe("times", () => {
  it.each([
    [0, "0 ms"], [999, "999 ms"], [1000, "1 s"], [1599, "1.5 s"], [59_999, "59 s"], [61_000, "1 min 1 s"], [5 * MIN, "5 min"],
    [239 * MIN, "3 h 59 min"], [47 * 60 * MIN, "2 days"], [24 * 60 * MIN, "1 day"],
  ])("%i ms is %s", (ms, text) => expect(duration(ms)).toBe(text));
  it.each([[10_000, "now"], [-90 * MIN, "1 h"], [59 * MIN, "59 min"], [40 * 60 * MIN, "2 days"]])(
    "%i ms is roughly %s", (ms, text) => expect(roughly(ms)).toBe(text),
  );
  it("names the year only of another year", () => {
    const at = new Date("2026-11-16T03:38:00Z");
    expect(shortTime(at, new Date("2026-01-01T00:00:00Z"), { zone: "UTC" })).toBe("16 Nov 03:38");
    expect(shortTime(at, new Date("2027-06-01T00:00:00Z"), { zone: "UTC" })).toBe("16 Nov 2026 03:38");
  });
  it("has seconds where they are asked for", () => {
    const at = new Date("2026-11-16T03:38:09Z");
    expect(shortTime(at, at, { zone: "UTC", seconds: true })).toBe("16 Nov 03:38:09");
  });
  it("says the exact time in UTC too", () => {
    expect(exactTime(new Date("2026-11-16T03:38:00Z"), "Europe/Berlin")).toMatch(/04:38:00.*\(2026-11-16T03:38:00Z\)/);
  });
});

describe("times as a person chose them", () => {
  afterEach(() => setFormats(null, null));
  const at = new Date("2026-11-16T23:38:00Z");

  it("are in the zone and form of the choice", () => {
    setFormats("Asia/Tokyo", "en-US");
    expect(shortTime(at, at)).toMatch(/^Nov 17,? 08:38\sAM$/);
    expect(exactTime(at)).toContain("8:38:00");
    setFormats("Pacific/Kiritimati", null);
    expect(shortTime(new Date("2026-12-31T11:00:00Z"), at)).toBe("1 Jan 2027 01:00");
  });

  it("leave out a zone that the browser does not know", () => {
    setFormats("Mars/Base", null);
    expect(shortTime(at, at)).toMatch(/Nov/);
  });

  it.each([
    ["2026-07-01T10:00", "Europe/Berlin", "2026-07-01T08:00:00.000Z"],
    ["2026-12-01T10:00", "America/New_York", "2026-12-01T15:00:00.000Z"],
    // The hour that does not exist, and the hour that exists twice.
    ["2026-03-29T02:30", "Europe/Berlin", "2026-03-29T01:30:00.000Z"],
    ["2026-10-25T02:30", "Europe/Berlin", "2026-10-25T00:30:00.000Z"],
    ["2026-11-16T10:00", "UTC", "2026-11-16T10:00:00.000Z"],
  ])("reads %s in %s", (local, zone, instant) => expect(instantOf(local, zone)).toBe(instant));

  it("of a field are read and shown in the zone of the person", () => {
    setFormats("Pacific/Kiritimati", null);
    const section = sectionOf({ type: "input", field: "at", kind: "datetime" });
    expect(valueOf(section, "2026-11-16T10:00")).toBe("2026-11-15T20:00:00.000Z");
    expect(valueOf(section, "2026-11-16T10:00:00+02:00")).toBe("2026-11-16T10:00:00+02:00");
    expect(localText("2026-11-15T20:00:00Z")).toBe("2026-11-16T10:00:00");
    expect(offsetText(new Date("2026-11-15T20:00:00Z"))).toBe("+14:00");
    expect(clock(new Date("2026-11-15T20:05:00Z"))).toBe("10:05");
  });

  it("reads nothing from nothing", () => expect([instantOf(""), instantOf("soon")]).toEqual([null, null]));
});

it("a text of the server has its times in the reader's zone, and a wrong one as it was", () => {
  const now = new Date("2026-11-17T12:00:00Z");
  const text = "stopped: w1 at 2026-11-17T09:26:03.123456Z (record 3), w2 at 2025-01-02T03:04:05+01:00, 2026-99-17T09:26:03Z.";
  expect(withShortTimes(text, now, "UTC")).toBe("stopped: w1 at 17 Nov 09:26:03 (record 3), w2 at 2 Jan 2025 02:04:05, 2026-99-17T09:26:03Z.");
});
