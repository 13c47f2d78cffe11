// @vitest-environment jsdom
import { expect, it } from "vitest";
import { LiveConnection } from "@/live/connection";
import type { Change, Line, LineState } from "@/services/live";

/** A line whose state the test decides. */
function scripted() {
  const opened: { told: (state: LineState) => void; failed: () => void; heard: Set<(change: Change) => void>; closed: boolean }[] = [];
  const opener = (told: (state: LineState) => void, failed: () => void): Line => {
    const self = { told, failed, heard: new Set<(change: Change) => void>(), closed: false };
    opened.push(self);
    return {
      runs: () => () => {},
      holds: (heard) => {
        self.heard.add(heard);
        return () => self.heard.delete(heard);
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

it("counts a gap after a lost connection, so that lists are read again", () => {
  const { opened, opener } = scripted();
  const live = new LiveConnection([opener]);
  live.start();
  opened[0]!.told("live");
  expect([live.state, live.gaps]).toEqual(["live", 0]);
  opened[0]!.told("reconnecting");
  expect([live.state, live.gaps]).toEqual(["reconnecting", 1]);
  live.stop();
});

it("takes the next way after two failed handshakes, and takes its followers along", () => {
  const socket = scripted();
  const streams = scripted();
  const live = new LiveConnection([socket.opener, streams.opener]);
  live.start();
  live.onHolds(() => {});
  socket.opened[0]!.failed();
  expect(streams.opened).toHaveLength(0);
  socket.opened[0]!.failed();
  expect(streams.opened).toHaveLength(1);
  expect(socket.opened[0]!.closed).toBe(true);
  expect(streams.opened[0]!.heard.size).toBe(1);
  live.stop();
});
