// What can go wrong: the server refused (ProblemError), or it could not be reached (ConnectionError).

export class HoldfastError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server said no, and why: a problem document (RFC 9457). */
export class ProblemError extends HoldfastError {
  constructor(problem, status = problem.status, retryAfter = null) {
    super(problem.hint ? `${problem.detail} ${problem.hint}` : problem.detail);
    this.problem = problem;
    this.status = status;
    this.code = problem.code;
    this.detail = problem.detail;
    this.hint = problem.hint ?? null;
    this.errors = problem.errors ?? [];
    this.retryable = problem.retryable ?? false;
    this.requestId = problem.request_id ?? null;
    this.retryAfter = retryAfter;
  }
}

/** No answer came, or it broke off. What was asked may have been done all the same. */
export class ConnectionError extends HoldfastError {}

/** No answer came within the time that was given for one. */
export class TimeoutError extends ConnectionError {}

/** The error that an answer is. Something between us and the server may have answered in its place. */
export async function problemOf(response) {
  const after = secondsOf(response.headers.get("retry-after"));
  const text = await response.text().catch(() => "");
  return new ProblemError(told(text) ?? unknown(response, text), response.status, after);
}

function told(text) {
  try {
    const found = JSON.parse(text);
    return typeof found?.code === "string" && typeof found?.detail === "string" ? found : null;
  } catch {
    return null;
  }
}

function unknown(response, text) {
  const words = text.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim().slice(0, 200);
  return {
    type: "about:blank",
    title: response.statusText || `HTTP ${response.status}`,
    status: response.status,
    code: `http_${response.status}`,
    detail: `${response.url || "The server"} answered ${response.status}${words ? `: ${words}` : "."}`,
    hint: "This is no answer of Holdfast: is the url right, and what stands between?",
    request_id: response.headers.get("x-request-id"),
  };
}

/** Of a Retry-After header: seconds or a date. */
function secondsOf(value) {
  if (!value) return null;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : null;
}
