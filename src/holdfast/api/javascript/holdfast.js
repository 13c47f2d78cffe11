// The client of a Holdfast server, for Node 18 or newer and for browsers. No dependencies, no build step.
//
//     import { Holdfast } from "./holdfast.js";
//     const client = new Holdfast({ url: "http://127.0.0.1:8420", token });
//     const run = await client.createRun({ flow: "refund", input: { order: "A-17" } });
//     for await (const event of client.streamRun(run.id)) console.log(event.type);
//
// Each operation of the server's OpenAPI document is a method (operations.js is made of it): first what stands in the
// path, then the body, then the query, then options.
import { HoldfastError, ProblemError } from "./errors.js";
import { newKey } from "./keys.js";
import { OPERATIONS } from "./operations.js";
import { Socket } from "./socket.js";
import { eventSourceOf } from "./source.js";
import { EventStream } from "./stream.js";
import { Transport } from "./transport.js";

export { ConnectionError, HoldfastError, ProblemError, TimeoutError } from "./errors.js";
export { EventStream, OPERATIONS, Socket };

export class Holdfast {
  #transport;

  constructor(options = {}) {
    this.#transport = new Transport(options);
    this.url = this.#transport.base;
    /** The browser's own `fetch` and `EventSource`, with this client's server and credential. */
    this.fetch = this.#fetch.bind(this);
    this.EventSource = eventSourceOf(this.#transport, options.stream);
    /** Lists of many pages as one: `for await (const run of client.each.listRuns())`. */
    this.each = Object.fromEntries(
      Object.entries(OPERATIONS)
        .filter(([, { pages }]) => pages)
        .map(([name]) => [name, (...given) => this.#every(name, given)]),
    );
  }

  /** Of a session's page: its changes are made for this person only, also if another one signs in meanwhile. */
  bindSession(session) {
    this.#transport.bind(session);
  }

  /** One operation by its name, with what a body does not tell: `{status, headers, etag, location, body}`. */
  async request(name, ...given) {
    const operation = Object.hasOwn(OPERATIONS, name) ? OPERATIONS[name] : null;
    if (!operation) throw new HoldfastError(`There is no operation ${name}.`);
    const { path, body, query, options } = read(name, operation, given);
    const response = await this.#transport.send(operation.method, path, {
      ...packed(operation, body, options),
      query,
      signal: options.signal,
      timeout: options.timeout,
      retries: options.retries,
      whole: operation.gives !== "file",
      ...(operation.keyed ? { repeatable: true } : {}),
    });
    return {
      status: response.status,
      headers: response.headers,
      etag: response.headers.get("etag"),
      location: response.headers.get("location"),
      body: await this.#unpacked(operation, response),
    };
  }

  /** A socket of this server: several runs, answers and cancels over one connection. */
  socket(options = {}) {
    return new Socket(this.#transport, options);
  }

  /** What a run came to: resolves where it has ended, or waits for a person, however long that takes. */
  async waitFor(run, { signal, untilEnded = false } = {}) {
    for (;;) {
      // A server that is away is waited for, as the stream does.
      const found = await this.getRunResult(run, { wait: 30 }, { signal, retries: Infinity });
      const rests = ["completed", "failed", "cancelled", ...(untilEnded ? [] : ["pending_input"])];
      if (rests.includes(found.status)) return found;
      // A run that only waits for a person answers at once: its stream says when there is more to know.
      if (found.status === "pending_input") await this.#untilDecided(run, signal);
    }
  }

  async #untilDecided(run, signal) {
    const { event_seq: after, status } = await this.getRun(run, { signal, retries: Infinity });
    if (status !== "pending_input") return;
    for await (const _event of new EventStream(this.#transport, pathOf("streamRun", [run]), { after }, { signal })) return;
  }

  async *#every(name, given) {
    const { pages, path } = OPERATIONS[name];
    const at = (path.match(NAMES) ?? []).length;
    const [head, query, rest] = [given.slice(0, at), given[at] ?? {}, given.slice(at + 1)];
    for (let next = query[pages]; ; ) {
      const page = await this[name](...head, { ...query, [pages]: next ?? undefined }, ...rest);
      yield* page.items;
      next = pages === "cursor" ? page.next : page.items.length ? page.last : null;
      if (next === null || next === undefined) return;
    }
  }

  async #fetch(path, init = {}) {
    const { method = "GET", body, signal, headers } = init;
    const kind = typeof body === "string" ? { "Content-Type": "application/json" } : {};
    const given = { ...kind, ...Object.fromEntries(new Headers(headers)) };
    if (given["content-type"]) delete given["Content-Type"];
    const url = this.#transport.address(path);
    return this.#transport.once(method.toUpperCase(), url, { body, headers: given, signal, whole: false });
  }

  async #unpacked(operation, response) {
    if (operation.gives === "file") return response;
    if (operation.gives === "nothing" || [204, 304].includes(response.status)) return undefined;
    const text = await response.text();
    try {
      return this.#transport.parse(text, response);
    } catch {
      const url = response.url || "The server";
      throw new ProblemError({
        type: "about:blank", title: "No JSON", status: response.status, code: "not_json",
        detail: `${url} answered ${text ? `with no JSON: ${text.slice(0, 200)}` : "with nothing"}.`,
        hint: "Is the url right, and what stands between?", request_id: response.headers.get("x-request-id"),
      });
    }
  }

  /** Of the methods that OPERATIONS names. */
  static #call(name, operation) {
    if (operation.gives !== "events") {
      return async function (...given) {
        return (await this.request(name, ...given)).body;
      };
    }
    return function (...given) {
      const { path, query, options } = read(name, operation, given);
      return new EventStream(this.#transport, path, query, options);
    };
  }

  static {
    for (const [name, operation] of Object.entries(OPERATIONS)) {
      const value = Holdfast.#call(name, operation);
      Object.defineProperty(value, "name", { value: name });
      Object.defineProperty(Holdfast.prototype, name, { value, writable: true, configurable: true });
    }
  }
}

const NAMES = /\{(\w+)\}/g;

/** Arguments by what the operation takes: path, body, query, options, in this order. */
function read(name, operation, given) {
  const names = operation.path.match(NAMES) ?? [];
  const rest = given.slice(names.length);
  const found = { path: pathOf(name, given), body: undefined, query: undefined };
  if (operation.body) found.body = rest.shift();
  if (operation.query) found.query = rest.shift() ?? undefined;
  found.options = rest.shift() ?? {};
  if (rest.length) throw new HoldfastError(`${name} takes ${given.length - rest.length} arguments, not ${given.length}.`);
  return found;
}

/** A name in a path is one part of it, whatever it has in it; dots alone would be another path. */
function pathOf(name, given) {
  let place = 0;
  return OPERATIONS[name].path.replace(NAMES, (_, parameter) => {
    const value = given[place++];
    const usable = (typeof value === "string" && value !== "" && !/^\.{1,2}$/.test(value)) || typeof value === "number";
    if (!usable) throw new HoldfastError(`${name}: ${parameter} is ${JSON.stringify(value) ?? "missing"}, which names nothing.`);
    return encodeURIComponent(value);
  });
}

function packed(operation, body, { key, ifMatch, ifNoneMatch, headers } = {}) {
  const found = new Headers(headers);
  if (operation.gives !== "file") found.set("Accept", "application/json, application/problem+json");
  if (ifMatch) found.set("If-Match", quoted(ifMatch));
  if (ifNoneMatch) found.set("If-None-Match", quoted(ifNoneMatch));
  if (operation.keyed) found.set("Idempotency-Key", key ?? newKey());
  if (operation.body === "json") {
    if (!found.has("Content-Type")) found.set("Content-Type", "application/json");
    return { body: JSON.stringify(body ?? {}), headers: found };
  }
  if (operation.body === "form") return { body: formOf(body), headers: found };
  if (operation.body && !found.has("Content-Type")) found.set("Content-Type", operation.body);
  return { body, headers: found };
}

function quoted(etag) {
  return /^(\*|(W\/)?".*")$/.test(String(etag)) ? String(etag) : `"${etag}"`;
}

/** Files by their field's name. */
function formOf(body) {
  if (body instanceof FormData) return body;
  const form = new FormData();
  for (const [name, value] of Object.entries(body ?? {})) form.append(name, value, value.name ?? name);
  return form;
}
