// Several runs by one WebSocket, and answers on the way back. It comes back by itself, and goes on where it was.
import { ConnectionError, HoldfastError, ProblemError, TimeoutError } from "./errors.js";
import { Following } from "./following.js";
import { newKey } from "./keys.js";
import { Watchdog, backoff, sleep } from "./waiting.js";

const PATH = "/v1/stream/ws";
const HOLDS = "holds";
const RUNS = "runs";
const REFUSED = 1008;
const IDLE = 45_000;
/** The server takes 20 messages a second of one socket. */
const BURST = 20;
const BETWEEN = 70;

export class Socket {
  #transport;
  #options;
  #runs = new Map();
  #asked = new Map();
  #number = 0;
  #line = null;
  #known = false;
  #running = null;
  #closing = new AbortController();
  #watchdog;
  #sent = [];
  #outbox = [];
  #sending = false;

  constructor(transport, options = {}) {
    this.#transport = transport;
    this.#options = options;
    this.#watchdog = new Watchdog(options.idle ?? IDLE, () => this.#line?.close(4000, "silent"));
    this.state = "idle";
    options.signal?.addEventListener("abort", () => this.#stop(options.signal.reason), { once: true });
    if (options.signal?.aborted) this.#stop(options.signal.reason);
  }

  /** A run's events, each once and in order; `for await` of what this gives. */
  follow(run, { after = 0, names } = {}) {
    if (this.#runs.has(run)) throw new HoldfastError(`This socket follows run ${run} already.`);
    const found = new Following(this, run, { after, names });
    this.#runs.set(run, found);
    this.subscribe(found);
    this.#begin();
    return found;
  }

  /** What happens to the holds that the caller may see, from now on or after an event. */
  followHolds({ after = null } = {}) {
    return this.#followTopic(HOLDS, after);
  }

  /** The tenant's runs that change, as they are then, from now on or after an event. */
  followRuns({ after = null } = {}) {
    return this.#followTopic(RUNS, after);
  }

  #followTopic(topic, after) {
    if (this.#runs.has(topic)) throw new HoldfastError(`This socket follows the ${topic} already.`);
    const found = new Following(this, null, { after, topic });
    this.#runs.set(topic, found);
    this.subscribe(found);
    this.#begin();
    return found;
  }

  /** Answer what the run asks; `hold` where it asks several things. Sent again after a lost connection, and
   * counted once. */
  answer(run, content, { hold, key = newKey(), ...more } = {}) {
    return this.#ask({ type: "answer", run, content, hold, key }, { again: true, ...more });
  }

  resume(run, { checkpoint_id, input_data, mode, key = newKey(), ...more } = {}) {
    return this.#ask({ type: "resume", run, checkpoint_id, input_data, mode, key }, { again: true, ...more });
  }

  cancel(run, { reason, ...more } = {}) {
    return this.#ask({ type: "cancel", run, reason }, more);
  }

  ping(options = {}) {
    return this.#ask({ type: "ping" }, { again: true, ...options });
  }

  /** Ends every iteration, quietly; what was asked and not answered is rejected. */
  close() {
    this.#stop(null);
  }

  // ---- what its runs ask for

  subscribe(following) {
    if (following.isPaused || !this.#known) return;
    const { run, topic, last: after, names = this.#options.names } = following;
    const said = topic ? { type: "subscribe", topic, after } : { type: "subscribe", run, after, names };
    following.begins();
    // Told at once and not by the promise: its first event may come with the same packet.
    const heard = (result) => following.stands(result);
    this.#ask(said, { once: true, heard }).catch((error) => {
      if (error instanceof ProblemError) following.fail(error);
    });
  }

  unsubscribe({ run, topic }) {
    const named = topic ? { topic } : { run };
    if (this.#known) this.#ask({ type: "unsubscribe", ...named }, { once: true }).catch(() => {});
  }

  leave(following) {
    const name = following.topic ?? following.run;
    if (this.#runs.get(name) !== following) return;
    this.#runs.delete(name);
    this.unsubscribe(following);
  }

  // ---- asking

  /** `again`: the same may be said twice. `once`: belongs to this connection alone. */
  #ask(said, { again = false, once = false, heard, timeout = this.#transport.timeout, signal } = {}) {
    if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason ?? closed());
    const id = (this.#number += 1);
    return new Promise((resolve, reject) => {
      const asked = { said: { ...said, id }, again, once, heard, sent: false };
      const settle = (act) => (value) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", over);
        this.#asked.delete(id);
        act(value);
      };
      const over = () => asked.reject(signal.reason);
      asked.resolve = settle(resolve);
      asked.reject = settle(reject);
      const late = () => asked.reject(new TimeoutError(`${said.type}: no answer within ${timeout / 1000} s.`));
      const timer = once || !Number.isFinite(timeout) ? undefined : setTimeout(late, timeout);
      if (signal?.aborted) return over();
      signal?.addEventListener("abort", over, { once: true });
      this.#asked.set(id, asked);
      if (this.#known) this.#send(asked);
      this.#begin();
    });
  }

  #send(asked) {
    this.#outbox.push(asked);
    this.#drain();
  }

  /** At the pace that the server takes. */
  async #drain() {
    if (this.#sending) return;
    this.#sending = true;
    while (this.#outbox.length && this.#known) {
      const now = Date.now();
      this.#sent = this.#sent.filter((at) => now - at < 1000);
      if (this.#sent.length >= BURST) {
        await sleep(BETWEEN);
        continue;
      }
      const asked = this.#outbox.shift();
      if (!this.#asked.has(asked.said.id)) continue;
      asked.sent = true;
      this.#sent.push(now);
      this.#line.send(JSON.stringify(asked.said));
    }
    this.#sending = false;
  }

  // ---- the connection

  #begin() {
    this.#running ??= this.#keep().finally(() => {
      this.#running = null;
      if (this.#isWanted()) this.#begin(); // somebody came while it went
    });
  }

  /** One connection after the other, while somebody wants something. */
  async #keep() {
    for (let failures = 0; this.#isWanted(); failures += 1) {
      try {
        if (await this.#connection()) failures = 0;
        if (!this.#isWanted()) break;
        this.#say("waiting");
        await sleep(backoff(failures, { ...this.#transport.pace, ...this.#options.backoff }), this.#closing.signal);
      } catch (error) {
        if (!this.#closing.signal.aborted) this.#stop(error);
        break;
      }
    }
    this.#say("closed");
  }

  #isWanted() {
    return !this.#closing.signal.aborted && (this.#runs.size > 0 || this.#asked.size > 0);
  }

  /** Resolves where it is closed: true where it was good for something. Throws where it is refused. */
  async #connection() {
    this.#say("connecting");
    const token = await this.#transport.currentToken();
    if (this.#closing.signal.aborted) return false;
    const line = this.#open();
    this.#line = line;
    this.#watchdog.again();
    let refused = null;
    let greeted = false;
    line.onopen = () => {
      if (token) line.send(JSON.stringify({ type: "auth", token }));
    };
    line.onmessage = ({ data }) => {
      this.#watchdog.again();
      const said = this.#transport.parse(data, null);
      if (said.type === "hello") greeted = true;
      else if (said.type === "error" && !greeted) refused = new ProblemError(said.problem);
      this.#hear(said);
    };
    const code = await new Promise((resolve) => {
      line.onclose = (event) => resolve(event.code);
      line.onerror = () => {};
    });
    this.#lost();
    if (refused) throw refused;
    if (code === REFUSED) throw new HoldfastError("The server refused the socket.");
    return greeted;
  }

  #open() {
    const Kind = this.#options.WebSocket ?? globalThis.WebSocket;
    if (!Kind) {
      throw new HoldfastError("There is no WebSocket here: Node has one since 22; else hand one over as `WebSocket`.");
    }
    return new Kind(this.#transport.address(PATH).replace(/^http/, "ws"));
  }

  #hear(said) {
    const asked = this.#asked.get(said.id);
    const following = this.#runs.get(said.topic ?? said.run);
    if (said.type === "hello") this.#greeted();
    else if (said.type === "event") following?.take(said);
    else if (said.type === "ack") {
      asked?.heard?.(said.result);
      asked?.resolve(said.result);
    }
    // Nothing more comes of it: whether that is so for good, the server says to the next subscriber.
    else if (said.type === "end" && following?.isHeard) this.subscribe(following);
    else if (said.type === "error" && asked) asked.reject(new ProblemError(said.problem));
    else if (said.type === "error") following?.fail(new ProblemError(said.problem));
  }

  #greeted() {
    this.#known = true;
    this.#say("open");
    for (const each of this.#runs.values()) this.subscribe(each);
    for (const asked of this.#asked.values()) if (!asked.once && !asked.sent) this.#send(asked);
  }

  #lost() {
    this.#known = false;
    this.#line = null;
    this.#outbox = [];
    this.#watchdog.stop();
    for (const asked of [...this.#asked.values()]) {
      if (asked.sent && !asked.again) asked.reject(lost(asked.said));
      else if (asked.once) asked.reject(lost(asked.said));
      asked.sent = false;
    }
  }

  #stop(reason) {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort(reason ?? closed());
    for (const each of [...this.#runs.values()]) reason ? each.fail(reason) : each.end();
    for (const asked of [...this.#asked.values()]) asked.reject(reason ?? closed());
    this.#line?.close();
    this.#say("closed");
  }

  #say(state) {
    if (state === this.state) return;
    this.state = state;
    this.#options.onState?.(state);
  }
}

function lost({ type }) {
  return new ConnectionError(`The connection was lost before the answer to ${type}: look whether it was done.`);
}

function closed() {
  return new HoldfastError("This socket is closed.");
}
