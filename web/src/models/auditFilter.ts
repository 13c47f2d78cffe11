/** The filters of the audit, as the address has them and as the server wants them. */
import { instantOf } from "./time";

const NAMES = ["q", "actor", "action", "since", "until"] as const;
export type AuditWords = { [Name in (typeof NAMES)[number]]?: string };
export type AuditWindow = { text: string; actor: string; action: string; since: string | null; until: string | null };

/** Only what was filled in: an address without filters has none of these names. */
export function auditWords(given: AuditWords): AuditWords {
  return Object.fromEntries(NAMES.flatMap((name) => (given[name]?.trim() ? [[name, given[name].trim()]] : [])));
}

/** Times are those of the reader's zone. A time that cannot be read does not filter. */
export function auditWindow({ q = "", actor = "", action = "", since = "", until = "" }: AuditWords): AuditWindow {
  return { text: q, actor, action, since: instantOf(since), until: instantOf(until) };
}
