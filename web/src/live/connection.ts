/** One connection per tab. After two failed handshakes events come by streams, then lists are read each 15 s. */
import { type Change, type Line, type LineState, type RunChange, isReachable, openSocket, openStreams } from "@/services/live";

export type LiveState = "live" | "reconnecting" | "offline";
export const POLL_MS = 15_000;
/** A socket that once worked is tried again after so long. */
export const AGAIN_MS = 60_000;
const MOST_FAILURES = 2;

type Opener = (onState: (state: LineState) => void, failed: () => void) => Line;
type Shared<T> = { heard: Set<(news: T) => void>; end: () => void };
type Wish = { begin: (line: Line) => () => void; stop: () => void };

export class LiveConnection {
  state: LiveState = "reconnecting";
  /** Counts what may have been missed: when a connection is back, and with each poll. */
  gaps = 0;
  #ways: readonly Opener[];
  #reachable: () => Promise<boolean>;
  #way = 0;
  #line: Line | null = null;
  #failures = 0;
  #wasLive = false;
  #socketWorked = false;
  #wishes = new Set<Wish>();
  #shared = new Map<string, Shared<never>>();
  #watchers = new Set<() => void>();
  #poll: ReturnType<typeof setInterval> | undefined;
  #again: ReturnType<typeof setTimeout> | undefined;

  constructor(ways: readonly Opener[] = [openSocket, openStreams], reachable = isReachable) {
    this.#ways = ways;
    this.#reachable = reachable;
  }

  start(): void {
    window.addEventListener("online", this.#networkChanged);
    window.addEventListener("offline", this.#networkChanged);
    document.addEventListener("visibilitychange", this.#woke);
    if (!navigator.onLine) this.#become("offline");
    this.#open();
  }

  stop(): void {
    window.removeEventListener("online", this.#networkChanged);
    window.removeEventListener("offline", this.#networkChanged);
    document.removeEventListener("visibilitychange", this.#woke);
    this.#endTimers();
    this.#leave();
  }

  watch = (listener: () => void): (() => void) => {
    this.#watchers.add(listener);
    return () => this.#watchers.delete(listener);
  };

  /** What changes after the first of them began to listen, whichever way it comes. */
  onHolds(heard: (change: Change) => void): () => void {
    let last: number | null = null;
    return this.#share("holds", heard, (line, all) => {
      const following = line.holds(last, all);
      return () => {
        last = following.last() ?? last;
        following.stop();
      };
    });
  }

  /** Told the id of each run that changes. */
  onRuns(heard: (run: string) => void): () => void {
    return this.#share("runs", heard, (line, all) => line.runs(all));
  }

  /** All who follow one run hear its events after the number of the first of them. */
  onRun(run: string, after: number, heard: (change: RunChange) => void): () => void {
    let last = after;
    return this.#share(`run ${run}`, heard, (line, all) =>
      line.run(run, last, (change) => {
        last = Math.max(last, change.number);
        all(change);
      }),
    );
  }

  /** One subscription for all who want the same. */
  #share<T>(name: string, heard: (news: T) => void, begin: (line: Line, all: (news: T) => void) => () => void): () => void {
    const known = (this.#shared.get(name) as Shared<T> | undefined) ?? { heard: new Set(), end: () => {} };
    if (!this.#shared.has(name)) {
      this.#shared.set(name, known as Shared<never>);
      known.end = this.#wish((line) =>
        begin(line, (news) => {
          for (const each of known.heard) each(news);
        }),
      );
    }
    known.heard.add(heard);
    return () => {
      known.heard.delete(heard);
      if (known.heard.size > 0) return;
      this.#shared.delete(name);
      known.end();
    };
  }

  #wish(begin: (line: Line) => () => void): () => void {
    const wish: Wish = { begin, stop: () => {} };
    this.#wishes.add(wish);
    if (this.#line) wish.stop = begin(this.#line);
    return () => {
      this.#wishes.delete(wish);
      wish.stop();
    };
  }

  // ---- the ways, one after the other

  #open(): void {
    const opener = this.#ways[this.#way];
    if (opener === undefined) return void this.#beginPolling();
    this.#failures = 0;
    const line = opener(
      (state) => this.#line === line && this.#heard(state),
      () => this.#line === line && this.#failed(),
    );
    this.#line = line;
    for (const wish of this.#wishes) wish.stop = wish.begin(line);
  }

  #leave(): void {
    const line = this.#line;
    this.#line = null;
    for (const wish of this.#wishes) {
      wish.stop();
      wish.stop = () => {};
    }
    line?.close();
  }

  #startOver = (): void => {
    this.#leave();
    this.#way = 0;
    this.#open();
  };

  async #beginPolling(): Promise<void> {
    this.#poll ??= setInterval(() => {
      this.#missed();
      if (this.#line === null) this.#startOver();
    }, POLL_MS);
    const reachable = await this.#reachable();
    if (this.#line === null && this.state !== "live") this.#become(reachable && navigator.onLine ? "reconnecting" : "offline");
  }

  #endTimers(): void {
    clearInterval(this.#poll);
    clearTimeout(this.#again);
    this.#poll = undefined;
    this.#again = undefined;
  }

  #heard(state: LineState): void {
    if (state !== "live") {
      if (this.state === "live") this.#become("reconnecting");
      return;
    }
    this.#failures = 0;
    this.#endTimers();
    if (this.#way === 0) this.#socketWorked = true;
    else if (this.#socketWorked) this.#again = setTimeout(this.#startOver, AGAIN_MS);
    if (this.state === "live") return;
    if (this.#wasLive) this.gaps += 1;
    this.#wasLive = true;
    this.#become("live");
  }

  #failed(): void {
    this.#failures += 1;
    if (this.#failures < MOST_FAILURES || !navigator.onLine) return;
    this.#leave();
    this.#way += 1;
    this.#open();
  }

  #networkChanged = (): void => {
    if (!navigator.onLine) return this.#become("offline");
    if (this.state !== "offline") return;
    this.#become("reconnecting");
    this.#startOver();
  };

  /** After a sleep the next attempt may be far away. */
  #woke = (): void => {
    if (document.visibilityState === "visible" && navigator.onLine && this.state !== "live") this.#startOver();
  };

  #missed(): void {
    this.gaps += 1;
    this.#tell();
  }

  #become(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#watchers) listener();
  }
}
