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

/** The search of a link: `status:failed flow:claims`. */
export function writeRunQuery(query: { status: readonly string[]; flow: string }): string {
  const flow = /\s/.test(query.flow) ? `"${query.flow}"` : query.flow;
  return [query.status.length > 0 ? STATUS + query.status.join(",") : "", flow ? `flow:${flow}` : ""].filter(Boolean).join(" ");
}
