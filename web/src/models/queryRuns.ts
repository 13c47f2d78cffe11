/** A search of runs: `status:failed flow:claims created<2d timeout`. */
import { QueryError, TEXT, type Word, type Wrong, lengthOf, readWords, requireColon } from "./query";

/** By its name, or by what people read. */
const STATUSES: Record<string, string> = {
  pending: "pending", running: "running", waiting: "waiting", pending_input: "pending_input", resumable: "resumable",
  completed: "completed", failed: "failed", cancelled: "cancelled",
  queued: "pending", sleeping: "waiting", waiting_for_input: "pending_input", interrupted: "resumable",
};
export const RUN_STATUSES = [...new Set(Object.values(STATUSES))];
const PLAIN: Record<string, string> = { flow: "flow", version: "version", key: "instance_key", thread: "thread", error: "error" };
const NAMES = new Set([...Object.keys(PLAIN), "by", "status", "created", "took", "at", TEXT]);

export type RunQuery = { fields: Record<string, unknown>; text: string; words: string[]; wrong: Wrong | null };

/** `now`: microseconds. */
export function readRunQuery(query: string, me: string, now: bigint): RunQuery {
  const fields: Record<string, unknown> = {};
  const statuses: string[] = [];
  const set = (field: string, value: unknown) => {
    if (field in fields) throw new QueryError("twice");
    fields[field] = value;
  };
  const { free, words, wrong } = readWords(query, NAMES, (word) => {
    const { name, sign, value } = word;
    const isUnder = sign.startsWith("<");
    if (name === "created") return set(isUnder ? "created_after" : "created_before", now - lengthOf(word));
    if (name === "took") return set(isUnder ? "took_under" : "took_over", lengthOf(word));
    requireColon(word);
    if (name in PLAIN) return set(PLAIN[name]!, value);
    if (name === "by") return set("started_by", value === "me" ? me : value.includes(":") ? value : `user:${value}`);
    if (name === "status") return void statuses.push(...statusesOf(word));
    if (value !== "breakpoint") throw new QueryError("value", ["breakpoint"]);
    fields["at_breakpoint"] = true;
  });
  if (wrong) return { fields: {}, text: "", words: [], wrong };
  return { fields: { ...fields, ...(statuses.length > 0 ? { status: statuses } : {}) }, text: free, words, wrong: null };
}

function statusesOf({ value }: Word): string[] {
  return value.toLowerCase().split(",").map((each) => {
    const found = Object.hasOwn(STATUSES, each) ? STATUSES[each] : undefined;
    if (found === undefined) throw new QueryError("value", RUN_STATUSES);
    return found;
  });
}
