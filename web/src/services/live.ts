/** The WebSocket of the tab, and what replaces it where none comes about. */
import type { HoldEvent, RunEvent, RunWire } from "@client";
import { addressOf, client } from "./client";

export type Topic = { kind: "holds" } | { kind: "run"; run: string; after: number };
export type Change = { hold: string; run: string; version: number; status: string; actor: string; action: string };
export type RunChange = { run: string; number: number; type: string; node: string; data: Record<string, unknown> };
export type LineState = "live" | "reconnecting" | "closed";

/** Events of a topic, each once and in order; they go on after a lost connection where they were. */
export type Line = {
  runs: (heard: (run: string) => void) => () => void;
  /** After an event, or from now on. `last`: the number that was seen last. */
  holds: (after: number | null, heard: (change: Change) => void) => { stop: () => void; last: () => number | null };
  run: (run: string, after: number, heard: (change: RunChange) => void) => () => void;
  close: () => void;
};

/** `failed`: the handshake did not come about. */
export function openSocket(onLineState: (state: LineState) => void, failed: () => void): Line {
  let greeted = false;
  const socket = client.socket({
    onState(state) {
      if (state === "open") greeted = true;
      // A connection that was lost is no failed handshake.
      if (state === "waiting" && !greeted) failed();
      if (state === "waiting") greeted = false;
      onLineState(state === "open" ? "live" : state === "closed" ? "closed" : "reconnecting");
    },
  });
  return {
    runs: (heard) => drain(socket.followRuns(), (data: RunWire) => heard(data.id)),
    holds(after, heard) {
      const found = socket.followHolds({ after });
      return { stop: drain(found, (data: HoldEvent) => heard(changeOf(data))), last: () => found.last };
    },
    run: (run, after, heard) => drain(socket.follow<RunEvent>(run, { after }), (data) => heard(runChangeOf(data))),
    close: () => socket.close(),
  };
}

/** Server-sent events: one connection per topic. */
export function openStreams(onLineState: (state: LineState) => void, failed: () => void): Line {
  const open = new Set<{ close: () => void }>();
  const options = {
    onState(state: string) {
      if (state === "waiting") failed();
      onLineState(state === "open" ? "live" : state === "closed" ? "closed" : "reconnecting");
    },
  };
  const keep = (stream: { close: () => void }, stop: () => void) => {
    open.add(stream);
    return () => {
      open.delete(stream);
      stop();
    };
  };
  return {
    // There is no stream of all runs: the list is read from time to time.
    runs: () => () => {},
    holds(after, heard) {
      const stream = client.streamHolds(after === null ? {} : { after }, options);
      const stop = keep(stream, drain(stream, (data: HoldEvent) => data.hold_id && heard(changeOf(data))));
      return { stop, last: () => stream.last };
    },
    run(run, after, heard) {
      const stream = client.streamRun(run, { after }, options);
      return keep(stream, drain(stream, (data: RunEvent) => heard(runChangeOf(data))));
    },
    close() {
      for (const stream of open) stream.close();
    },
  };
}

/** Whether the server answers at all, whatever it says. */
export async function isReachable(): Promise<boolean> {
  try {
    await fetch(addressOf("/healthz"), { cache: "no-store", signal: AbortSignal.timeout(5_000) });
    return true;
  } catch {
    return false;
  }
}

function drain<T>(source: AsyncIterable<{ data: T }> & { close: () => void }, heard: (data: T) => void): () => void {
  void (async () => {
    try {
      for await (const event of source) heard(event.data);
    } catch {
      // Refused for good: the state of the connection says so, and lists are still read.
    }
  })();
  return () => source.close();
}

function changeOf(event: HoldEvent): Change {
  return {
    hold: event.hold_id,
    run: event.run ?? "",
    version: event.version,
    status: event.status,
    actor: event.actor.replace(/^user:/, ""),
    action: event.type,
  };
}

function runChangeOf(event: RunEvent): RunChange {
  return { run: event.run, number: event.number, type: event.type, node: event.node, data: event.data };
}
