// A stream that outlives its connections: each event once, in order, however often it is cut.
import { ConnectionError, HoldfastError, ProblemError, TimeoutError, problemOf } from "./errors.js";
import { Frames } from "./frames.js";
import { pauseBefore } from "./transport.js";
import { Watchdog, linked, sleep } from "./waiting.js";

const MEDIA = "text/event-stream";
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);
const CONNECT = 30_000;
const IDLE = 45_000;

export class EventStream {
  #transport;
  #path;
  #query;
  #options;
  #closing = new AbortController();
  #retry;
  #renewed = false;

  /** `last`: the number of the event that was seen last; a client that stores it can resume after it in a week. */
  constructor(transport, path, query = {}, options = {}) {
    const { after, after_sequence, ...rest } = query;
    this.#transport = transport;
    this.#path = path;
    this.#query = rest;
    this.#options = options;
    this.last = after ?? after_sequence ?? null;
    this.state = "idle";
  }

  /** Ends the iteration, quietly. */
  close() {
    this.#closing.abort();
    this.#say("closed");
  }

  /**
   * Events as they come. Ends behind the last event of a run that has ended; throws ProblemError where the server
   * refuses for good, and the reason of a signal that was aborted.
   */
  async *[Symbol.asyncIterator]() {
    for await (const { id, type, text } of this.frames()) yield { id, type, data: this.#transport.parse(text, null) };
  }

  /** Calls a function with each event, or the functions of an object by the event's type ("*": all). One after the
   * other: the next event waits for what the function returns. Resolves where the stream ends. */
  async listen(handlers) {
    for await (const event of this) {
      if (typeof handlers === "function") await handlers(event);
      else for (const name of [event.type, "*"]) await handlers[name]?.(event);
    }
  }

  /** The same as text, with an id that is a number. */
  async *frames() {
    const { patience = Infinity } = this.#options;
    let failures = 0;
    try {
      for (;;) {
        const line = linked(this.#options.signal, this.#closing.signal);
        let moved = false;
        let error = null;
        try {
          for await (const frame of this.#connected(line.signal)) {
            if (frame.over) return;
            failures = 0;
            if (!this.#isNew(frame)) continue;
            moved = true;
            yield { ...frame, id: this.last };
            // Whoever takes them may have had enough while others wait already.
            line.signal.throwIfAborted();
          }
        } catch (found) {
          error = this.#judged(found);
        } finally {
          line.abort();
          line.release();
        }
        if (this.#closing.signal.aborted) return;
        // A stream that ended by itself has either told all (204 comes next) or may go on at once.
        if (error === null && moved) continue;
        failures += 1;
        if (failures > patience) throw error ?? new ConnectionError("The stream ends as soon as it begins.");
        await this.#pause(failures - 1, error);
      }
    } finally {
      this.#say("closed");
    }
  }

  /** What can pass is given back, the rest is thrown. */
  #judged(error) {
    const { signal } = this.#options;
    if (this.#closing.signal.aborted) return null;
    if (signal?.aborted) throw signal.reason;
    if (error.status === 401 && typeof this.#transport.token === "function" && !this.#renewed) {
      this.#renewed = true;
      return error;
    }
    if (passes(error)) return error;
    throw error;
  }

  async *#connected(signal) {
    this.#say("connecting");
    const response = await this.#open(signal);
    if (response.status === 204) {
      yield { over: true };
      return;
    }
    this.#renewed = false;
    this.#say("open");
    yield* this.#read(response, signal);
  }

  async #pause(failures, error) {
    this.#say("waiting", error);
    const pace = { first: this.#retry, ...this.#transport.pace, ...this.#options.backoff };
    const either = linked(this.#options.signal, this.#closing.signal);
    try {
      await sleep(pauseBefore(failures, error, pace), either.signal);
    } catch (reason) {
      if (!this.#closing.signal.aborted) throw reason;
    } finally {
      either.release();
    }
  }

  async #open(signal) {
    const url = this.#placed(this.#transport.address(this.#path, this.#query));
    const headers = new Headers(this.#options.headers);
    headers.set("Accept", MEDIA);
    if (this.last !== null) headers.set("Last-Event-ID", String(this.last));
    const timeout = this.#options.timeout ?? CONNECT;
    const response = await this.#transport.once("GET", url, { headers, signal, timeout, whole: false });
    if (!response.ok) throw await problemOf(response);
    const kind = response.headers.get("content-type") ?? "";
    if (response.status !== 204 && !kind.startsWith(MEDIA)) {
      await response.body?.cancel();
      throw new HoldfastError(`${url} is no stream: it answered with ${kind || "nothing"}. Is the url right?`);
    }
    return response;
  }

  /** The place is in the address too: some proxies take the header away, and all would be told again for ever. */
  #placed(url) {
    if (this.last === null) return url;
    const found = new URL(url);
    found.searchParams.delete("after_sequence");
    found.searchParams.set("after", String(this.last));
    return found.href;
  }

  /** What one connection tells. The clock runs only while we wait for it, not while somebody thinks. */
  async *#read(response, signal) {
    const reader = response.body.getReader();
    const decoder = new TextDecoder();
    const frames = new Frames();
    const idle = this.#options.idle ?? IDLE;
    const silent = new TimeoutError(`Nothing came for ${idle / 1000} s, not even a sign of life.`);
    const over = () => reader.cancel(signal.reason).catch(() => {});
    let cause = null;
    const watchdog = new Watchdog(idle, () => {
      cause = silent;
      reader.cancel(silent).catch(() => {});
    });
    signal.addEventListener("abort", over, { once: true });
    try {
      for (;;) {
        watchdog.again();
        const { done, value } = await reader.read().catch((error) => {
          throw new ConnectionError(`The stream broke off (${error?.cause?.message ?? error?.message}).`, { cause: error });
        });
        watchdog.stop();
        if (signal.aborted) throw signal.reason;
        if (cause) throw cause;
        if (done) return;
        yield* frames.push(decoder.decode(value, { stream: true }));
      }
    } finally {
      watchdog.stop();
      signal.removeEventListener("abort", over);
      reader.cancel().catch(() => {});
    }
  }

  /** Takes note of the place; false for what is no event or was told before. */
  #isNew(frame) {
    if (frame.retry !== undefined) this.#retry = frame.retry;
    const told = frame.id ?? frame.place;
    if (told === undefined || told === null || told === "") return frame.text !== undefined;
    const place = Number(told);
    const seen = this.last !== null && place <= this.last;
    if (!seen) this.last = place;
    return !seen && frame.text !== undefined;
  }

  #say(state, error = null) {
    if (state === this.state) return;
    this.state = state;
    this.#options.onState?.(state, error);
  }
}

function passes(error) {
  return error instanceof ProblemError ? PASSING.has(error.status) : error instanceof ConnectionError;
}
