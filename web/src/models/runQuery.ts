/** The words of a search of runs. The server reads them; the page only sets and removes statuses. */

const WORD = /[^\s"]*"[^"]*"|\S+/g;
const STATUS = "status:";

function wordsOf(text: string): string[] {
  return text.match(WORD) ?? [];
}

export function statusesIn(text: string): string[] {
  return wordsOf(text)
    .filter((word) => word.startsWith(STATUS))
    .flatMap((word) => word.slice(STATUS.length).split(","))
    .filter(Boolean);
}

export function withoutStatus(text: string): string {
  return wordsOf(text).filter((word) => !word.startsWith(STATUS)).join(" ");
}

/** Added if it is not among them, else removed. */
export function toggledStatus(text: string, status: string): string {
  const old = statusesIn(text);
  const next = old.includes(status) ? old.filter((each) => each !== status) : [...old, status];
  return [next.length > 0 ? STATUS + next.join(",") : "", withoutStatus(text)].filter(Boolean).join(" ");
}

const PAUSED = "at:breakpoint";

export function isPausedIn(text: string): boolean {
  return wordsOf(text).includes(PAUSED);
}

/** Only the runs that stand at a breakpoint, or all again. */
export function toggledPaused(text: string): string {
  const rest = wordsOf(text).filter((word) => word !== PAUSED);
  return (isPausedIn(text) ? rest : [...rest, PAUSED]).join(" ");
}

type RunWords = { status: readonly string[]; flow: string; version?: string; isPaused?: boolean; error?: string };

/** The search of a link: `status:failed flow:claims`. */
export function writeRunQuery({ status, flow, version = "", isPaused = false, error = "" }: RunWords): string {
  const words = { flow, version, error };
  return [
    status.length > 0 ? STATUS + status.join(",") : "",
    ...Object.entries(words).map(([name, value]) => (value ? `${name}:${quoted(value)}` : "")),
    isPaused ? PAUSED : "",
  ].filter(Boolean).join(" ");
}

function quoted(value: string): string {
  return /[\s"'\\]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
}
