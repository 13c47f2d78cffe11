/** One connection per tab. After two failed handshakes events come by streams, then lists are read each 15 s. */
import { type Change, type Line, type LineState, type RunChange, openSocket, openStreams } from "@/services/live";

export type LiveState = "live" | "reconnecting" | "offline";
export const POLL_MS = 15_000;
const MOST_FAILURES = 2;

type Opener = (told: (state: LineState) => void, failed: () => void) => Line;
type Shared<T> = { heard: Set<(news: T) => void>; end: () => void };
type Wish = { begin: (line: Line) => () => void; stop: () => void };

export class LiveConnection {
  state: LiveState = "reconnecting";
  /** Counts what may have been missed: after each lost connection, and with each poll. */
  gaps = 0;
  #line: Line | null = null;
  #openers: Opener[];
  #failures = 0;
  #wishes = new Set<Wish>();
  #shared = new Map<string, Shared<never>>();
  #watchers = new Set<() => void>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(openers: Opener[] = [openSocket, openStreams]) {
    this.#openers = [...openers];
  }

  start(): void {
    window.addEventListener("online", this.#networkChanged);
    window.addEventListener("offline", this.#networkChanged);
    this.#networkChanged();
    this.#open();
  }

  stop(): void {
    window.removeEventListener("online", this.#networkChanged);
    window.removeEventListener("offline", this.#networkChanged);
    clearInterval(this.#timer);
    this.#line?.close();
    this.#line = null;
  }

  watch = (told: () => void): (() => void) => {
    this.#watchers.add(told);
    return () => this.#watchers.delete(told);
  };

  onHolds(heard: (change: Change) => void): () => void {
    return this.#share("holds", heard, (line, all) => line.holds(all));
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

  #open(): void {
    const opener = this.#openers.shift();
    if (opener === undefined) {
      this.#timer = setInterval(() => {
        this.gaps += 1;
        this.#tell();
      }, POLL_MS);
      return;
    }
    this.#failures = 0;
    const line = opener(
      (state) => this.#line === line && this.#heard(state),
      () => this.#line === line && this.#failed(),
    );
    this.#line = line;
    for (const wish of this.#wishes) wish.stop = wish.begin(line);
  }

  #heard(state: LineState): void {
    if (state === "live") {
      this.#failures = 0;
      this.#become("live");
    } else if (this.state === "live") {
      this.gaps += 1;
      this.#become("reconnecting");
    }
  }

  #failed(): void {
    this.#failures += 1;
    if (this.#failures < MOST_FAILURES || !navigator.onLine) return;
    const line = this.#line;
    this.#line = null;
    line?.close();
    this.#open();
  }

  #networkChanged = (): void => {
    if (!navigator.onLine) this.#become("offline");
    else if (this.state === "offline") this.#become("reconnecting");
  };

  #become(state: LiveState): void {
    if (this.state === state) return;
    this.state = state;
    this.#tell();
  }

  #tell(): void {
    for (const told of this.#watchers) told();
  }
}
