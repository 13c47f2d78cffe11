// One run that a socket follows: what came, kept until somebody takes it.

const ENDED = new Set(["completed", "failed", "cancelled"]);
/** So many events wait for a slow reader; then the socket is asked to stop, and the stored log keeps the rest. */
const MOST = 1000;
const FEW = 100;

export class Following {
  #socket;
  #waiting = [];
  #wake = null;
  #over = false;
  #error = null;
  #paused = false;
  #heard = false;

  constructor(socket, run, { after = 0, names, topic = null } = {}) {
    this.#socket = socket;
    this.run = run;
    this.topic = topic;
    this.names = names;
    this.last = after;
  }

  /** Ends the iteration; the socket goes on with its other runs. */
  close() {
    this.#over = true;
    this.#waiting = [];
    this.#socket.leave(this);
    this.#ring();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (;;) {
        while (this.#waiting.length) {
          yield this.#waiting.shift();
          if (this.#paused && this.#waiting.length < FEW) {
            this.#paused = false;
            this.#socket.subscribe(this);
          }
        }
        if (this.#error) throw this.#error;
        if (this.#over) return;
        await new Promise((resolve) => { this.#wake = resolve; });
      }
    } finally {
      this.close();
    }
  }

  // ---- what the socket tells

  get isPaused() { return this.#paused; }

  /** Whether what is told of the run is told to this one, and not to one before it. */
  get isHeard() { return this.#heard && !this.#paused; }

  take({ id, event, data }) {
    // What is still under way of an older subscription would leave a gap.
    if (this.#over || !this.isHeard || id <= this.last) return;
    this.last = id;
    this.#waiting.push({ id, type: event, data });
    if (this.#waiting.length >= MOST) {
      this.#paused = true;
      this.#socket.unsubscribe(this);
    }
    this.#ring();
  }

  begins() {
    this.#heard = false;
  }

  /** How the run stood when it was subscribed to: over where nothing more can come. */
  stands({ status, event_seq: seq, after }) {
    this.#heard = true;
    // A topic that began with "from now on" goes on from there after a lost connection.
    this.last ??= after ?? null;
    if (ENDED.has(status) && this.last >= seq) this.end();
  }

  end() {
    this.#over = true;
    this.#socket.leave(this);
    this.#ring();
  }

  fail(error) {
    this.#error = error;
    this.end();
  }

  #ring() {
    this.#wake?.();
    this.#wake = null;
  }
}
