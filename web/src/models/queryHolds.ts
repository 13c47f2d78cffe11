/** A search of holds: `priority>=high due<2d flow:refund invoice`. */
import { QueryError, TEXT, type Word, type Wrong, lengthOf, readWords, requireColon } from "./query";

export const PRIORITIES = ["low", "normal", "high", "critical"] as const;
const STATUSES = ["pending", "resolved", "expired", "cancelled"] as const;
const HAS = ["comment"];
const PLAIN: Record<string, string> = { flow: "flow", type: "type", tag: "tags", run: "run", key: "instance_key" };
const NAMES = new Set([...Object.keys(PLAIN), "assignee", "group", "role", "status", "priority", "due", "age", "has", "decided_by", "decided", TEXT]);
const MOST_ASSIGNEE = 500;

/** `words`: the conditions, one for each chip; `text`: what is searched in the question. */
export type HoldQuery = { fields: Record<string, unknown>; text: string; words: string[]; wrong: Wrong | null };

/** `now`: microseconds. */
export function readHoldQuery(query: string, me: string, now: bigint): HoldQuery {
  const lists: Record<string, unknown[]> = {};
  const fields: Record<string, unknown> = {};
  const add = (field: string, ...values: unknown[]) => (lists[field] ??= []).push(...values);
  const taken = (word: Word) => {
    const { name, sign, value } = word;
    if (name in PLAIN) add(PLAIN[name]!, colon(word));
    else if (name === "status") add("status", ...statusesOf(colon(word)));
    else if (name === "assignee") add("assignees", colon(word) === "me" ? ["user", spelled(me.replace(/^user:/, ""))] : assigneeOf(value));
    else if (name === "group" || name === "role") add("assignees", [name, colon(word)]);
    else if (name === "priority") add("priority", ...prioritiesOf(sign, value));
    else if (name === "has") add("has", one(colon(word), HAS));
    else if (name === "due" && sign === ":" && value === "overdue") fields["expires_to"] = now;
    else if (name === "due") fields[sign.startsWith("<") ? "expires_to" : "expires_from"] = now + lengthOf(word);
    else if (name === "decided_by") add("resolved_by", ...deciderOf(colon(word), me));
    else if (name === "decided") Object.assign(fields, decidedIn(word, now));
    else fields[sign.startsWith("<") ? "created_from" : "created_to"] = now - lengthOf(word);
  };
  const { free, words, wrong } = readWords(query, NAMES, (word) => {
    for (const value of word.value.split(",")) taken({ ...word, value });
  });
  if (wrong) return { fields: {}, text: "", words: [], wrong };
  if (!lists["status"] && (lists["resolved_by"] || "resolved_from" in fields || "resolved_to" in fields)) add("status", "resolved", "expired");
  for (const [field, values] of Object.entries(lists)) fields[field] = distinct(values);
  return { fields, text: free, words, wrong: null };
}

function colon(word: Word): string {
  requireColon(word);
  return word.value;
}

function one(value: string, known: readonly string[]): string {
  if (!known.includes(value)) throw new QueryError("value", known);
  return value;
}

function statusesOf(value: string): readonly string[] {
  return value === "any" ? STATUSES : [one(value, [...STATUSES, "any"])];
}

function prioritiesOf(sign: string, value: string): readonly string[] {
  const at = PRIORITIES.findIndex((each) => each === one(value, PRIORITIES));
  const kept: Record<string, readonly string[]> = { ">=": PRIORITIES.slice(at), ">": PRIORITIES.slice(at + 1), "<=": PRIORITIES.slice(0, at + 1), "<": PRIORITIES.slice(0, at) };
  const chosen = kept[sign] ?? [value];
  if (chosen.length === 0) throw new QueryError("none", PRIORITIES);
  return chosen;
}

/** `group:finance`, `role:lead`, `user:kim`; a text without a known prefix is a person. */
function assigneeOf(raw: string): [string, string] {
  const text = raw.trim();
  if (text.length > MOST_ASSIGNEE || !isPrintable(text)) throw new QueryError("value");
  if (!text) return ["unrouted", ""];
  const at = text.indexOf(":");
  const kind = (at < 0 ? text : text.slice(0, at)).trim().toLowerCase();
  const value = at < 0 ? "" : text.slice(at + 1).trim();
  if (kind === "delegated_user") return [kind, value];
  if (at < 0 || !["user", "group", "role"].includes(kind)) return ["user", spelled(text)];
  if (!value) return ["unrouted", ""];
  return [kind, kind === "user" ? spelled(value) : value];
}

const NO_PEOPLE = ["service", "agent", "system", "policy"];

/** Ids of those who decided; the id of a person may have an address as it was typed. */
function deciderOf(value: string, me: string): string[] {
  if (value === "me") return [me];
  const at = value.indexOf(":");
  if (at > 0 && NO_PEOPLE.includes(value.slice(0, at))) return [value];
  const [kind, name] = assigneeOf(value);
  if (kind !== "user") throw new QueryError("value");
  return [`user:${value.replace(/^user:/, "")}`, `user:${name}`];
}

const DAY = 86_400_000_000n;

/** `decided<2d`: in the last two days; with a date: by day, in UTC. */
function decidedIn(word: Word, now: bigint): Record<string, bigint> {
  const { sign, value } = word;
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(value)) return { [sign.startsWith("<") ? "resolved_from" : "resolved_to"]: now - lengthOf(word) };
  const found = new Date(`${value}T00:00:00Z`);
  if (Number.isNaN(found.getTime()) || !found.toISOString().startsWith(value) || value.startsWith("0000")) throw new QueryError("value");
  const first = BigInt(found.getTime()) * 1000n;
  return {
    ...([":", ">=", ">"].includes(sign) ? { resolved_from: first + (sign === ">" ? DAY : 0n) } : {}),
    ...([":", "<=", "<"].includes(sign) ? { resolved_to: first + (sign === "<" ? 0n : DAY) } : {}),
  };
}

/** Only addresses: names of other systems may differ in case alone. */
function spelled(name: string): string {
  return /^[^@\s]+@[^@\s]+$/.test(name) && isPrintable(name) ? name.toLowerCase() : name;
}

function isPrintable(text: string): boolean {
  return !/[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u.test(text);
}

function distinct(values: readonly unknown[]): unknown[] {
  const seen = new Set<string>();
  return values.filter((each) => {
    const text = JSON.stringify(each);
    return seen.has(text) ? false : seen.add(text);
  });
}
