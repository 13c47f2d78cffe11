// One request: where it goes, who asks, and when it is asked again.
import { ConnectionError, HoldfastError, ProblemError, TimeoutError, problemOf } from "./errors.js";
import { backoff, joined, linked, sleep } from "./waiting.js";

const SAFE = new Set(["GET", "HEAD"]);
const PASSING = new Set([429, 502, 503, 504]);
const LONGEST_WAIT = 60_000;

export class Transport {
  #csrf = null;
  /** The person whose session this client uses. */
  #person = null;

  constructor({ url, token, fetch, headers = {}, retries = 4, timeout = 90_000, backoff: pace = {}, parse } = {}) {
    this.base = baseOf(url);
    this.token = token ?? null;
    this.headers = headers;
    this.retries = retries;
    this.timeout = timeout;
    this.pace = pace;
    this.parse = parse ?? ((text) => JSON.parse(text));
    this.fetch = fetch ?? ((...given) => globalThis.fetch(...given));
  }

  /** The whole address of a path. Another server's is refused: it would be told the token. */
  address(path, query) {
    const text = String(path);
    const url = new URL(/^[a-z][a-z+.-]*:/i.test(text) ? text : this.base + (text.startsWith("/") ? text : `/${text}`));
    if (url.origin !== new URL(this.base).origin) {
      throw new HoldfastError(`${url.origin} is not the server of this client (${this.base}).`);
    }
    for (const [name, value] of Object.entries(query ?? {})) {
      for (const each of Array.isArray(value) ? value : [value]) {
        if (each !== undefined && each !== null) url.searchParams.append(name, wordOf(each));
      }
    }
    return url.href;
  }

  /** A token that is a function is asked each time, so that it can be renewed. */
  async currentToken() {
    const token = typeof this.token === "function" ? await this.token() : this.token;
    // The platform would refuse it too, and show it in its error.
    if (token && !/^[\x21-\x7e]+$/.test(token)) {
      throw new HoldfastError("The token has characters that no token has: a line break or a quote that was copied with it?");
    }
    return token;
  }

  /**
   * An answer that is good (2xx or 304). Asked again where that cannot do anything twice: what is `repeatable`
   * after a lost connection, everything where the server had no time for it (429).
   */
  async send(method, path, { query, body, headers, signal, timeout, retries, repeatable, whole } = {}) {
    const most = retries ?? this.retries;
    const again = (repeatable ?? isRepeatable(method, headers)) && !isStream(body);
    let renewed = false;
    for (let failures = 0; ; failures += 1) {
      let error;
      try {
        const response = await this.once(method, this.address(path, query), { body, headers, signal, timeout, whole });
        if (response.ok || response.status === 304) return response;
        error = await problemOf(response);
      } catch (found) {
        error = found;
      }
      if (!renewed && this.#renews(error)) {
        renewed = true;
        continue;
      }
      if (failures >= most || !passes(error, again)) throw error;
      await sleep(pauseBefore(failures, error, this.pace), signal);
    }
  }

  /** Exactly one request. Throws ConnectionError where no answer came. */
  async once(method, url, { body, headers, signal, timeout, whole = true } = {}) {
    const limit = timeout ?? this.timeout;
    const shown = await this.#headers(method, headers);
    const { signal: both, abort, release } = whole ? linked(signal) : joined(signal);
    const timer = limit > 0 && Number.isFinite(limit) ? setTimeout(() => abort(LATE), limit) : undefined;
    try {
      const response = await this.fetch(url, {
        method,
        body,
        headers: shown,
        signal: both,
        credentials: this.token === null ? "same-origin" : "omit",
        ...(isStream(body) ? { duplex: "half" } : {}),
      });
      return whole ? await kept(response) : response;
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (error instanceof HoldfastError) throw error;
      if (both.reason === LATE) {
        throw new TimeoutError(`${method} ${url}: no answer within ${limit / 1000} s.`, { cause: error });
      }
      throw new ConnectionError(`${method} ${url}: no answer came (${causeOf(error)}).`, { cause: error });
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  async #headers(method, given = {}) {
    const found = new Headers(this.headers);
    for (const [name, value] of new Headers(given)) found.set(name, value);
    const token = await this.currentToken();
    if (token) found.set("Authorization", `Bearer ${token}`);
    else if (!SAFE.has(method)) await this.#showSession(found);
    return found;
  }

  /** With a session's cookie each change shows the session's own value. Without a session nothing is shown. */
  async #showSession(headers) {
    if (globalThis.location === undefined) return; // no cookies here
    this.#csrf ??= await this.#askSession();
    if (this.#csrf) headers.set("X-CSRF-Token", this.#csrf);
  }

  async #askSession() {
    const response = await this.fetch(this.address("/v1/session"), { credentials: "same-origin" }).catch(() => null);
    if (!response?.ok) return null;
    const session = await response.json();
    this.bind(session);
    return session.csrf ?? null;
  }

  /**
   * From here on changes are made for this person only. Throws ProblemError where it is another one than before:
   * the cookie belongs to the browser, and another person may have signed in in another tab.
   */
  bind({ subject, tenant }) {
    const person = JSON.stringify([subject, tenant]);
    if (this.#person !== null && this.#person !== person) {
      throw new ProblemError({
        type: "about:blank",
        title: "Unauthorized",
        status: 401,
        code: "session_changed",
        detail: "Another person has signed in in this browser.",
        hint: "Reload the page. Nothing was sent.",
      });
    }
    this.#person = person;
  }

  /** Whether another credential may be there by now: asked once for each request. */
  #renews(error) {
    if (!(error instanceof ProblemError)) return false;
    if (error.status === 403 && error.code === "csrf" && this.#csrf !== null) {
      this.#csrf = null;
      return true;
    }
    return error.status === 401 && typeof this.token === "function";
  }
}

const LATE = Symbol("late");

function baseOf(url) {
  const given = url ?? globalThis.location?.origin;
  if (!given || given === "null") {
    throw new HoldfastError("A client needs the server's url.", {
      cause: 'new Holdfast({ url: "http://127.0.0.1:8420", token })',
    });
  }
  const found = parsed(given);
  if (!/^https?:$/.test(found?.protocol)) {
    throw new HoldfastError(`${given} is no address of a server: write http://HOST:PORT.`);
  }
  return (found.origin + found.pathname).replace(/\/+$/, "");
}

function parsed(address) {
  try {
    return new URL(address, globalThis.location?.href);
  } catch {
    return null;
  }
}

/** A second deletion would say that there is no such thing, and a guarded change that it has changed. */
function isRepeatable(method, headers) {
  return SAFE.has(method) || (method === "PUT" && !new Headers(headers).has("If-Match"));
}

function wordOf(value) {
  return value instanceof Date ? value.toISOString() : String(value);
}

function isStream(body) {
  return typeof ReadableStream !== "undefined" && body instanceof ReadableStream;
}

/** The same answer with its body read, so that a connection that breaks inside it is seen here. */
async function kept(response) {
  if (response.body === null || [204, 205, 304].includes(response.status)) return response;
  const data = await response.arrayBuffer();
  const { status, statusText, headers } = response;
  return Object.defineProperty(new Response(data, { status, statusText, headers }), "url", { value: response.url });
}

function passes(error, repeatable) {
  if (error instanceof ProblemError) return error.status === 429 || (repeatable && PASSING.has(error.status));
  return error instanceof ConnectionError && repeatable;
}

/** Milliseconds: what the server asked for, or our own pace. */
export function pauseBefore(failures, error, pace) {
  const asked = error?.retryAfter;
  const own = backoff(failures, pace);
  return typeof asked === "number" ? Math.min(LONGEST_WAIT, asked * 1000 + own / 4) : own;
}

function causeOf(error) {
  return error?.cause?.code ?? error?.cause?.message ?? error?.message ?? String(error);
}
