import { expect, it, vi } from "vitest";
import { batched } from "@/live/batch";

it("asks once for the news of a moment, and takes the next after the answer", async () => {
  vi.useFakeTimers();
  const asked: string[][] = [];
  let answer: (() => void) | undefined;
  const batch = batched((news: string) => news, (all) => {
    asked.push(all);
    return new Promise((resolve) => { answer = resolve; });
  });
  for (const news of ["a", "b", "a"]) batch.add(news);
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toEqual([["a", "b"]]);
  batch.add("c");
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveLength(1);
  answer?.();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked[1]).toEqual(["c"]);
  batch.add("d");
  batch.stop();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveLength(2);
  vi.useRealTimers();
});

it("goes on after a failure, and takes at most a hundred at once", async () => {
  vi.useFakeTimers();
  const sizes: number[] = [];
  const batch = batched((news: number) => String(news), (all) => {
    sizes.push(all.length);
    return Promise.reject(new Error("away"));
  });
  for (let news = 0; news < 150; news += 1) batch.add(news);
  await vi.advanceTimersByTimeAsync(1000);
  expect(sizes).toEqual([100, 50]);
  vi.useRealTimers();
});

it("asks soon for the first news after a quiet time, and later for those that follow", async () => {
  vi.useFakeTimers();
  const asked: string[][] = [];
  const batch = batched((news: string) => news, (all) => {
    asked.push(all);
    return Promise.resolve();
  });
  batch.add("a");
  await vi.advanceTimersByTimeAsync(50);
  expect(asked).toEqual([["a"]]);
  batch.add("b");
  await vi.advanceTimersByTimeAsync(100);
  batch.add("c");
  expect(asked).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(100);
  expect(asked).toEqual([["a"], ["b", "c"]]);
  batch.stop();
  vi.useRealTimers();
});
