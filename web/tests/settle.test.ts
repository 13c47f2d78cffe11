import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { settling } from "@/live/settle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("lets the first pass at once, and of those that follow quickly only the one that is not given up", async () => {
  const settled = settling();
  const passed: number[] = [];
  const ask = (number: number) => {
    const given = new AbortController();
    settled(given.signal).then(() => passed.push(number), () => {});
    return given;
  };
  ask(1);
  await vi.advanceTimersByTimeAsync(50);
  expect(passed).toEqual([1]);
  const second = ask(2);
  await vi.advanceTimersByTimeAsync(50);
  second.abort();
  ask(3);
  await vi.advanceTimersByTimeAsync(140);
  expect(passed).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1000);
  expect(passed).toEqual([1, 3]);
  ask(4);
  await vi.advanceTimersByTimeAsync(0);
  expect(passed).toEqual([1, 3, 4]);
});
