import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { throttled } from "@/live/throttle";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const taking = (ms: number) => vi.fn(() => new Promise<void>((resolve) => void setTimeout(resolve, ms)));

it("acts once for all calls of a moment, also after a failure", async () => {
  const act = vi.fn(() => Promise.reject(new Error("away")));
  const { call } = throttled(act);
  for (let count = 0; count < 100; count += 1) call();
  await vi.advanceTimersByTimeAsync(1000);
  expect(act).toHaveBeenCalledTimes(1);
  call();
  await vi.advanceTimersByTimeAsync(1000);
  expect(act).toHaveBeenCalledTimes(2);
});

it("rests four times as long as the last one took, and never acts twice at a time", async () => {
  const act = taking(2_000);
  const { call } = throttled(act);
  const storm = setInterval(call, 10);
  await vi.advanceTimersByTimeAsync(100_000);
  clearInterval(storm);
  // Each of ten seconds: two for the answer, eight for the rest.
  expect(act).toHaveBeenCalledTimes(10);
});

it("acts for what came while it acted, and not after it was stopped", async () => {
  const act = taking(100);
  const { call, stop } = throttled(act);
  call();
  await vi.advanceTimersByTimeAsync(450);
  call();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(act).toHaveBeenCalledTimes(2);
  call();
  stop();
  call();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(act).toHaveBeenCalledTimes(2);
});

it("rests as long as it is told to", async () => {
  const act = taking(10);
  const { call } = throttled(act, 3_000);
  const storm = setInterval(call, 10);
  await vi.advanceTimersByTimeAsync(9_000);
  clearInterval(storm);
  expect(act).toHaveBeenCalledTimes(3);
});

it("acts soon after a quiet time, and then rests", async () => {
  const act = taking(10);
  const { call } = throttled(act);
  call();
  await vi.advanceTimersByTimeAsync(50);
  expect(act).toHaveBeenCalledTimes(1);
  call();
  await vi.advanceTimersByTimeAsync(300);
  expect(act).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(200);
  expect(act).toHaveBeenCalledTimes(2);
});
