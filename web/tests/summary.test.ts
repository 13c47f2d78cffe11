import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ANNOUNCE_MS, Summary } from "@/models/summary";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("says the first change soon, and the next ones together after ten seconds", () => {
  const said: number[] = [];
  const summary = new Summary((count) => said.push(count), () => Date.now());
  summary.add("a");
  vi.advanceTimersByTime(1);
  expect(said).toEqual([1]);
  for (let each = 0; each < 100; each += 1) summary.add(`h${each % 7}`);
  vi.advanceTimersByTime(ANNOUNCE_MS - 2);
  expect(said).toEqual([1]);
  vi.advanceTimersByTime(2);
  expect(said).toEqual([1, 7]);
  summary.add("b");
  summary.stop();
  vi.advanceTimersByTime(ANNOUNCE_MS * 2);
  expect(said).toEqual([1, 7]);
});
