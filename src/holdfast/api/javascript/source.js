// The browser's EventSource by another door: the same events and properties, with the client's credential, and a
// stream that comes back after errors at which a browser's would give up.
import { EventStream } from "./stream.js";

const [CONNECTING, OPEN, CLOSED] = [0, 1, 2];

/** A class whose instances ask with the transport's credential. */
export function eventSourceOf(transport, { signal, ...options } = {}) {
  return class EventSource extends EventTarget {
    static CONNECTING = CONNECTING;
    static OPEN = OPEN;
    static CLOSED = CLOSED;

    #stream;
    #handlers = {};

    constructor(url) {
      super();
      Object.assign(this, { CONNECTING, OPEN, CLOSED });
      this.url = transport.address(url);
      this.readyState = CONNECTING;
      this.withCredentials = false;
      this.#stream = new EventStream(transport, this.url, {}, { ...options, signal, onState: this.#told.bind(this) });
      // As a browser's, it begins after whoever made it has added their listeners.
      queueMicrotask(() => this.#follow());
    }

    close() {
      this.readyState = CLOSED;
      this.#stream.close();
    }

    async #follow() {
      try {
        for await (const { id, type, text } of this.#stream.frames()) {
          if (this.readyState === CLOSED) return;
          const more = { data: text, lastEventId: String(id), origin: new URL(this.url).origin };
          this.dispatchEvent(new MessageEvent(type, more));
        }
        this.#end(null);
      } catch (error) {
        this.#end(error);
      }
    }

    #told(state, error) {
      if (this.readyState === CLOSED) return;
      if (state === "open") {
        this.readyState = OPEN;
        this.dispatchEvent(new Event("open"));
      } else if (state === "waiting") {
        this.readyState = CONNECTING;
        this.#complain(error);
      }
    }

    #end(error) {
      if (this.readyState === CLOSED) return;
      this.readyState = CLOSED;
      this.#complain(error);
    }

    #complain(error) {
      this.dispatchEvent(Object.assign(new Event("error"), { error }));
    }

    #handle(type, handler) {
      if (this.#handlers[type]) this.removeEventListener(type, this.#handlers[type]);
      this.#handlers[type] = handler;
      if (handler) this.addEventListener(type, handler);
    }

    get onopen() { return this.#handlers.open ?? null; }
    set onopen(handler) { this.#handle("open", handler); }
    get onmessage() { return this.#handlers.message ?? null; }
    set onmessage(handler) { this.#handle("message", handler); }
    get onerror() { return this.#handlers.error ?? null; }
    set onerror(handler) { this.#handle("error", handler); }
  };
}
