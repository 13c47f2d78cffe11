/** The one client of the app. Its types are generated from the server's routes; only `services/` names them. */
import { ConnectionError, Holdfast, HoldfastError, ProblemError } from "@client";
import { readJson } from "@/models/json";
import { attendedFetch } from "./attendance";

function meta(name: string): string {
  return document.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content ?? "";
}

/** The path prefix of this server, without a slash at the end. */
export const rootPath = meta("holdfast-root");
export const release = meta("holdfast-release");
export const client = new Holdfast({ url: window.location.origin + rootPath, retries: 2, timeout: 30_000, parse, fetch: attendedFetch(window, (...given) => globalThis.fetch(...given)) });

let lastRequest = "";

function parse(text: string, response: Response | null): unknown {
  if (response === null) return readJson(text);
  lastRequest = response.headers.get("x-request-id") ?? "";
  try {
    const found = readJson(text);
    if (typeof found !== "object" || found === null || Array.isArray(found)) throw new TypeError("The answer is no object.");
    return found;
  } catch (error) {
    noteUnexpected(error);
    throw error;
  }
}

const unexpected = new WeakMap<object, string>();

/** Called where an answer could not be used: which request it was is known only then. */
export function noteUnexpected(error: unknown): void {
  if (error instanceof Error && !(error instanceof HoldfastError) && !unexpected.has(error)) unexpected.set(error, lastRequest);
}

/** What each item of a list becomes. Raises for an item without what every item has: an answer that nobody can use. */
export function rowsOf<W extends object, R>(items: readonly W[], names: readonly (keyof W & string)[], made: (item: W) => R): R[] {
  return items.map((item) => made(requireFields(item, names)));
}

export function requireFields<W extends object>(item: W, names: readonly (keyof W & string)[]): W {
  const missing = names.filter((name) => item[name] === undefined);
  if (missing.length > 0) throw new TypeError(`The answer has no ${missing.join(", ")}.`);
  return item;
}

/** An address of this server, below its path prefix. */
export function addressOf(path: string): string {
  return rootPath + path;
}

export type FieldError = { field: string; code: string; message: string };

/** An error in the words of the page. `kind` says what the page can do about it. */
export type Failure = {
  kind: "signed-out" | "forbidden" | "missing" | "conflict" | "changed" | "invalid" | "offline" | "unexpected" | "other";
  code: string;
  title: string;
  hint: string;
  requestId: string;
  errors: FieldError[];
  facts: Record<string, unknown>;
};

const KINDS: Record<number, Failure["kind"]> = {
  401: "signed-out",
  403: "forbidden",
  404: "missing",
  409: "conflict",
  412: "changed",
  422: "invalid",
};

export function failureOf(error: unknown): Failure {
  if (error instanceof ProblemError) {
    return {
      kind: KINDS[error.status] ?? "other",
      code: error.code,
      title: error.detail,
      hint: error.hint ?? "",
      requestId: error.requestId ?? "",
      errors: error.errors.map((each) => ({
        field: String(each["field"] ?? ""),
        code: String(each["code"] ?? ""),
        message: String(each["message"] ?? ""),
      })),
      facts: error.problem,
    };
  }
  const empty = { code: "", hint: "", requestId: "", errors: [], facts: {} };
  if (error instanceof ConnectionError) return { ...empty, kind: "offline", title: "" };
  const noted = error instanceof Error ? unexpected.get(error) : undefined;
  if (noted !== undefined) return { ...empty, kind: "unexpected", requestId: noted, title: String(error) };
  return { ...empty, kind: "other", title: error instanceof Error ? error.message : String(error) };
}
