/** The client of a Holdfast server. Every operation of its OpenAPI document is a method: see Operations. */
import type { Each, HoldWire, InputTaken, Operations, Problem, RunDetail, RunResult, RunWire } from "./operations.js";
export type * from "./operations.js";

/** A run, and a question that one waits with, as the server tells them. */
export type Run = RunDetail;
export type Hold = HoldWire;

/** What the platform's own `fetch` takes as a body and as headers. */
export type Sent = NonNullable<RequestInit["body"]>;
export type HeadersGiven = NonNullable<RequestInit["headers"]>;

/** A token, or a function that gives the one that is good now; after a 401 it is asked once more. */
export type Token = string | (() => string | Promise<string>);

export interface Backoff {
  /** Milliseconds before the second attempt; each further wait is twice as long. Default: 500. */
  first?: number;
  /** The longest wait. Default: 30,000. */
  most?: number;
}

export interface ClientOptions {
  /** Of the server. Default in a browser: the page's own origin. */
  url?: string | URL;
  /** Without one, a browser is known by its session's cookie. */
  token?: Token | null;
  /** Headers of every request. */
  headers?: Record<string, string>;
  /** How often a request is retried; default 4, 0: never. */
  retries?: number;
  /** Milliseconds for one attempt; default 90,000. */
  timeout?: number;
  backoff?: Backoff;
  fetch?: typeof globalThis.fetch;
  /** Reads JSON in place of `JSON.parse`: integers beyond 2^53 as bigint, say. `response`: null in streams and sockets. */
  parse?: (text: string, response: Response | null) => unknown;
  /** Of streams that `EventSource` opens. */
  stream?: StreamOptions;
}

export interface Options {
  signal?: AbortSignal;
  timeout?: number;
  retries?: number;
  headers?: HeadersGiven;
  /** Where the server takes an Idempotency-Key: yours in place of one that is made up for each call. */
  key?: string;
  /** The ETag, or the `version` of a hold: only this version is changed. */
  ifMatch?: string | number;
  /** With `request`: where nothing has changed, its status is 304 and there is no body. */
  ifNoneMatch?: string | number;
}

export interface Reply<T> {
  status: number;
  headers: Headers;
  etag: string | null;
  location: string | null;
  body: T;
}

/** An event of a stream. `id` grows: a client that stores it can resume after it. */
export interface StreamEvent<T> {
  id: number;
  type: string;
  data: T;
}

/** With `names: "seed"`, events have the flat fields of `SeedEvent` in place of these. */
export interface RunEvent {
  run: string;
  number: number;
  at: string | null;
  type: string;
  node: string;
  scope: string;
  data: Record<string, unknown>;
}

/** Of a pipeline, in the words of its specification: `event` is its name, beside the fields of each. */
export interface PipelineEvent {
  event: string;
  run: string;
  number: number;
  part: number;
  at: string | null;
  [name: string]: unknown;
}

export interface SeedEvent {
  run_id: string;
  sequence: number;
  timestamp: string | null;
  node_id: string;
  checkpoint_id?: string;
  status?: string;
  skipped_nodes?: string[];
  entity_id?: string;
  prompt?: string;
  is_resumed?: boolean;
  [name: string]: unknown;
}

/** What happened to a hold that the caller may see. */
export interface HoldEvent {
  id: string;
  seq: number;
  type: string;
  tenant: string;
  hold_id: string;
  run: string | null;
  at: string;
  actor: string;
  status: string;
  version: number;
  data: Record<string, unknown>;
}

export type StreamState = "idle" | "connecting" | "open" | "waiting" | "closed";

export interface StreamOptions {
  /** Aborted: the iteration throws its reason. `close()` ends it quietly. */
  signal?: AbortSignal;
  /** Called on each change; with "waiting", why. */
  onState?: (state: StreamState, error: Error | null) => void;
  /** Milliseconds without any sign of life after which a connection is given up; default 45,000. */
  idle?: number;
  /** Milliseconds for a connection to come about; Default: 30,000. */
  timeout?: number;
  /** Failures in a row after which it gives up; default: never. */
  patience?: number;
  backoff?: Backoff;
  headers?: HeadersGiven;
}

export type Handlers<T> =
  | ((event: StreamEvent<T>) => unknown)
  | Record<string, (event: StreamEvent<T>) => unknown>;

/** A stream that outlives its connections: each event once, in order. */
export class EventStream<T = RunEvent> implements AsyncIterable<StreamEvent<T>> {
  private constructor();
  /** The number of the event that was seen last. */
  readonly last: number | null;
  readonly state: StreamState;
  [Symbol.asyncIterator](): AsyncGenerator<StreamEvent<T>, void, undefined>;
  /** The callback form: one function, or several by the event's type ("*": all). */
  listen(handlers: Handlers<T>): Promise<void>;
  close(): void;
}

export interface SocketOptions {
  signal?: AbortSignal;
  names?: "own" | "seed";
  onState?: (state: StreamState) => void;
  idle?: number;
  backoff?: Backoff;
  /** Where the platform has none: Node before 22. */
  WebSocket?: typeof globalThis.WebSocket;
}

export interface AskOptions {
  signal?: AbortSignal;
  timeout?: number;
}

/** One run of a socket. Taken slowly, the rest waits in the server's log. */
export interface Following<T = RunEvent> extends AsyncIterable<StreamEvent<T>> {
  readonly run: string;
  readonly last: number;
  [Symbol.asyncIterator](): AsyncGenerator<StreamEvent<T>, void, undefined>;
  close(): void;
}

/** Several runs, answers and cancels over one WebSocket that comes back by itself. */
export class Socket {
  private constructor();
  readonly state: StreamState;
  follow<T = RunEvent>(run: string, options?: { after?: number; names?: "own" | "seed" }): Following<T>;
  /** What happens to the holds that the caller may see, from now on or after an event. */
  followHolds(options?: { after?: number | null }): Following<HoldEvent>;
  /** The tenant's runs that change, as they are then, from now on or after an event. */
  followRuns(options?: { after?: number | null }): Following<RunWire>;
  answer(
    run: string,
    content: string | Record<string, unknown>,
    options?: AskOptions & { hold?: string; key?: string },
  ): Promise<InputTaken>;
  cancel(run: string, options?: AskOptions & { reason?: string }): Promise<RunDetail>;
  resume(
    run: string,
    options?: AskOptions & {
      checkpoint_id?: string;
      input_data?: Record<string, unknown>;
      mode?: string;
      key?: string;
    },
  ): Promise<RunDetail>;
  ping(options?: AskOptions): Promise<Record<string, never>>;
  close(): void;
}

/** What the platform calls a MessageEvent; of "error": why. */
export interface LiveEvent {
  readonly type: string;
  readonly data: string;
  readonly lastEventId: string;
  readonly origin: string;
  readonly error?: Error | null;
}

/** As the platform's EventSource. */
export interface LiveSource {
  readonly url: string;
  readonly readyState: number;
  onopen: ((event: LiveEvent) => unknown) | null;
  onmessage: ((event: LiveEvent) => unknown) | null;
  onerror: ((event: LiveEvent) => unknown) | null;
  addEventListener(type: string, listener: (event: LiveEvent) => unknown, options?: boolean | { once?: boolean }): void;
  removeEventListener(type: string, listener: (event: LiveEvent) => unknown): void;
  close(): void;
}

export interface LiveSourceKind {
  readonly CONNECTING: 0;
  readonly OPEN: 1;
  readonly CLOSED: 2;
  new (url: string | URL): LiveSource;
}

type Given<F> = F extends (...given: infer G) => unknown ? G : never;
type Gives<F> = F extends (...given: never[]) => Promise<infer R> ? R : never;
/** Operations that answer once. */
export type Asked = {
  [K in keyof Operations]: Operations[K] extends (...given: never[]) => Promise<unknown> ? K : never;
}[keyof Operations];

export interface Holdfast extends Operations {}

export class Holdfast {
  constructor(options?: ClientOptions);
  readonly url: string;
  readonly each: Each;
  /** One operation by its name, with its status and headers. */
  request<K extends Asked>(name: K, ...given: Given<Operations[K]>): Promise<Reply<Gives<Operations[K]>>>;
  /** Changes are made for this person only, also if another one signs in in this browser: then they throw. */
  bindSession(session: { subject: string; tenant: string }): void;
  socket(options?: SocketOptions): Socket;
  /** What a run came to: resolves when it has ended or, by default, is waiting for input. */
  waitFor(run: string, options?: { signal?: AbortSignal; untilEnded?: boolean }): Promise<RunResult>;
  /** The platform's own `fetch`, with this server and credential; it needs no `this`. */
  readonly fetch: (path: string | URL, init?: RequestInit) => Promise<Response>;
  /** The platform's own `EventSource`, with this server and credential, also where the platform has none. */
  readonly EventSource: LiveSourceKind;
}

/** What each method sends, by its name. */
export const OPERATIONS: Readonly<
  Record<
    keyof Operations,
    {
      readonly method: string;
      readonly path: string;
      readonly body?: string;
      readonly query?: true;
      readonly keyed?: true;
      readonly gives?: "nothing" | "file" | "events";
      readonly pages?: "cursor" | "after";
    }
  >
>;

export class HoldfastError extends Error {}

/** The server said no, and why. */
export class ProblemError extends HoldfastError {
  readonly problem: Problem & Record<string, unknown>;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly hint: string | null;
  readonly errors: Record<string, unknown>[];
  readonly retryable: boolean;
  readonly requestId: string | null;
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfter: number | null;
}

/** No answer came. What was asked may have been done all the same. */
export class ConnectionError extends HoldfastError {}
export class TimeoutError extends ConnectionError {}
