// @vitest-environment jsdom
import { expect, it, vi } from "vitest";
import { AGAIN_MS, LiveConnection, POLL_MS } from "@/live/connection";
import type { Change, Line, LineState } from "@/services/live";

/** A line whose state the test decides. */
function scripted() {
  type Scripted = { told: (state: LineState) => void; failed: () => void; heard: Set<(change: Change) => void>; closed: boolean; after: number | null; last: number | null };
  const opened: Scripted[] = [];
  const opener = (told: (state: LineState) => void, failed: () => void): Line => {
    const self: Scripted = { told, failed, heard: new Set(), closed: false, after: null, last: null };
    opened.push(self);
    return {
      runs: () => () => {},
      holds: (after, heard) => {
        self.heard.add(heard);
        self.after = after;
        return { stop: () => void self.heard.delete(heard), last: () => self.last };
      },
      run: () => () => {},
      close: () => {
        self.closed = true;
      },
    };
  };
  return { opened, opener };
}

const change: Change = { hold: "h", run: "r", version: 2, status: "pending", actor: "dana", action: "hold.opened" };

it("has one subscription for all who follow the holds", () => {
  const { opened, opener } = scripted();
  const live = new LiveConnection([opener]);
  live.start();
  const seen: string[] = [];
  const first = live.onHolds((each) => seen.push(`1 ${each.hold}`));
  const second = live.onHolds((each) => seen.push(`2 ${each.hold}`));
  expect(opened[0]!.heard.size).toBe(1);
  for (const heard of opened[0]!.heard) heard(change);
  expect(seen).toEqual(["1 h", "2 h"]);
  first();
  second();
  expect(opened[0]!.heard.size).toBe(0);
  live.stop();
  expect(opened[0]!.closed).toBe(true);
});

it("counts a gap when a lost connection is back, so that lists are read again", () => {
  const { opened, opener } = scripted();
  const live = new LiveConnection([opener]);
  live.start();
  opened[0]!.told("live");
  expect([live.state, live.gaps]).toEqual(["live", 0]);
  opened[0]!.told("reconnecting");
  expect([live.state, live.gaps]).toEqual(["reconnecting", 0]);
  opened[0]!.told("live");
  expect([live.state, live.gaps]).toEqual(["live", 1]);
  live.stop();
});

it("takes the next way after two failed handshakes, and its followers go on where they were", () => {
  const socket = scripted();
  const streams = scripted();
  const live = new LiveConnection([socket.opener, streams.opener]);
  live.start();
  live.onHolds(() => {});
  socket.opened[0]!.last = 41;
  socket.opened[0]!.failed();
  expect(streams.opened).toHaveLength(0);
  socket.opened[0]!.failed();
  expect(streams.opened).toHaveLength(1);
  expect(socket.opened[0]!.closed).toBe(true);
  expect(socket.opened[0]!.heard.size).toBe(0);
  expect(streams.opened[0]!.heard.size).toBe(1);
  expect(streams.opened[0]!.after).toBe(41);
  live.stop();
});

it("polls when no way is left, says Offline if the server is away, and tries all ways again", async () => {
  vi.useFakeTimers();
  const socket = scripted();
  const streams = scripted();
  let isThere = false;
  const live = new LiveConnection([socket.opener, streams.opener], () => Promise.resolve(isThere));
  live.start();
  const failAll = () => {
    for (const each of [socket, streams]) for (const _ of [1, 2]) each.opened.at(-1)!.failed();
  };
  failAll();
  await vi.advanceTimersByTimeAsync(0);
  expect([live.state, live.gaps]).toEqual(["offline", 0]);
  isThere = true;
  await vi.advanceTimersByTimeAsync(POLL_MS);
  expect(live.gaps).toBe(1);
  expect(socket.opened).toHaveLength(2);
  failAll();
  await vi.advanceTimersByTimeAsync(0);
  expect(live.state).toBe("reconnecting");
  await vi.advanceTimersByTimeAsync(POLL_MS);
  socket.opened.at(-1)!.told("live");
  expect(live.state).toBe("live");
  const { gaps } = live;
  await vi.advanceTimersByTimeAsync(3 * POLL_MS);
  expect(live.gaps).toBe(gaps);
  live.stop();
  vi.useRealTimers();
});

it("comes back from streams to a socket that once worked", async () => {
  vi.useFakeTimers();
  const socket = scripted();
  const streams = scripted();
  const live = new LiveConnection([socket.opener, streams.opener]);
  live.start();
  socket.opened[0]!.told("live");
  socket.opened[0]!.told("reconnecting");
  for (const _ of [1, 2]) socket.opened[0]!.failed();
  streams.opened[0]!.told("live");
  await vi.advanceTimersByTimeAsync(AGAIN_MS);
  expect(streams.opened[0]!.closed).toBe(true);
  expect(socket.opened).toHaveLength(2);
  live.stop();
  vi.useRealTimers();
});
