/** Holds: what the inbox shows of them, and what a person does with them. */
import type { HoldPreview, HoldView as WireView, HoldViewerWire, HoldWire } from "@client";
import { momentsIn } from "@/models/sentence";
import { toolCallOf } from "@/models/toolCall";
import { plainText } from "@/models/values";
import { client, requireFields, rowsOf } from "./client";

export type View = WireView;
export type Option = { id: string; label: string; variant: string; requiresComment: boolean };
export type DecidedValue = { field: string; label: string; value: unknown; proposed: unknown; edited: boolean };

export type Hold = {
  id: string;
  version: number;
  title: string;
  prompt: string;
  status: string;
  type: string;
  flow: string;
  run: string;
  node: string;
  priority: string;
  assignee: string;
  why: string;
  options: Option[];
  context: unknown;
  schema: unknown;
  createdAt: string;
  /** The person who started the run; empty if nobody did. */
  startedBy: string;
  expiresAt: string | null;
  /** Its deadline stands still until a question that was asked back is answered. */
  isPaused: boolean;
  claimedBy: string;
  claimUntil: string | null;
  placedBy: string;
  /** The label of the decision that can still be undone; empty if there is none. */
  placedLabel: string;
  placedUntil: string | null;
  resumedAt: string | null;
  requestHash: string;
  /** Of the field that the machine is least sure of. */
  confidence: number | null;
  isAgent: boolean;
  /** How many comments, questions and replies; null: only lists say it. */
  comments: number | null;
  /** By this person; only the list of snoozed holds says it. */
  snoozedUntil: string | null;
  outcome: Outcome | null;
  /** What a judge had answered; null before the decision, and in lists. */
  shadow: Shadow | null;
};

/** `agrees`: null if there is nothing to compare. `isIntact`: it is the answer that was sealed before people were asked. */
export type Shadow = { judge: string; label: string; confidence: number | null; reasoning: string; error: string; agrees: boolean | null; isIntact: boolean };

export type Outcome = {
  decision: string;
  label: string;
  by: string;
  at: string | null;
  comment: string;
  channel: string;
  /** Decided after its deadline. */
  isLate: boolean;
  /** By the deadline, not by a person. */
  isAutomatic: boolean;
  rule: string;
  onBehalfOf: string;
  overrideReason: string;
  values: DecidedValue[];
};

export type HoldPage = { rows: Hold[]; next: string | null };
export const PAGE = 100;

export async function countOpen(view: View, q = ""): Promise<number> {
  return (await client.countHolds({ view, q: q || null, ...(isOpenView(view) ? { status: ["pending"] } : {}) })).count;
}

/** Those that wait for a decision; those of another status if the search asks for it. */
export async function countWaiting(view: View, q: string): Promise<number> {
  const isOpen = !/(^|[\s"'])status:/i.test(q);
  return (await client.countHolds({ view, q: q || null, ...(isOpen ? { status: ["pending"] } : {}) })).count;
}

export async function listHolds(view: View, q: string, cursor: string | null): Promise<HoldPage> {
  const page = await client.listHolds({ view, q: q || null, limit: PAGE, cursor });
  return { rows: page.items.map(holdOf), next: page.next ?? null };
}

/** Which holds of these runs the list of a view has now. */
export async function findHolds(view: View, q: string, runs: readonly string[]): Promise<Hold[]> {
  const found: Hold[] = [];
  for (let from = 0; from < runs.length; from += PAGE) {
    const run = runs.slice(from, from + PAGE);
    let cursor: string | null = null;
    do {
      const page = await client.listHolds({ view, q: q || null, run, limit: PAGE, cursor });
      found.push(...page.items.map(holdOf));
      cursor = page.next ?? null;
    } while (cursor !== null);
  }
  return found;
}

/** Views of what still waits; in the others decided holds are listed too. */
export function isOpenView(view: View): boolean {
  return !["done", "all"].includes(view);
}

export async function getHold(id: string): Promise<Hold> {
  return holdOf(await client.getHold(id));
}

/** What an option would lead to. `kind`: step, effect, question, sleep, failure, end or unknown. */
export type Consequence = { kind: string; text: string };
export type OptionConsequences = { option: string; label: string; entries: Consequence[] };

/** With the values that the form proposes. */
export async function getConsequences(id: string): Promise<OptionConsequences[]> {
  return consequencesOf(await client.holdConsequences(id));
}

/** With values that were typed. */
export async function previewAnswer(id: string, decision: string, data: Record<string, unknown> | null): Promise<OptionConsequences[]> {
  return consequencesOf(await client.previewHold(id, { decision, response_data: data }));
}

function consequencesOf(wire: HoldPreview): OptionConsequences[] {
  return wire.options.map(({ option, label, entries }) => ({
    option, label: plainText(label), entries: entries.map((each) => ({ kind: each.kind, text: plainText(each.text) })),
  }));
}

export type ConversationCall = { id: string; tool: string; arguments: unknown; hold: string | null };
/** `role`: system, user, assistant or tool. */
export type ConversationMessage = { role: string; turn: number; text: string; calls: ConversationCall[]; failed: boolean; isOmitted: boolean };
export type Conversation = { agent: string; messages: ConversationMessage[]; leftOut: number };

/** What was said before an agent asked; without messages if none did. */
export async function getConversation(id: string): Promise<Conversation> {
  const found = await client.holdConversation(id);
  return {
    agent: plainText(found.agent ?? ""),
    leftOut: found.left_out ?? 0,
    messages: (found.messages ?? []).map((each) => ({
      role: each.role, turn: each.turn, text: plainText(each.text ?? ""), failed: each.failed ?? false, isOmitted: each.omitted ?? false,
      calls: (each.calls ?? []).map((call) => ({ id: call.id, tool: call.tool, arguments: call.arguments, hold: call.hold ?? null })),
    })),
  };
}

/** `times`: those that the text has, in UTC. */
export type Entry = { id: string; at: string; text: string; times: string[] };
export type Comment = { id: string; kind: string; by: string; at: string; text: string; to: string; isOpen: boolean };

export async function getHistory(id: string): Promise<Entry[]> {
  return rowsOf((await client.holdHistory(id)).items, ["id", "at", "text"], ({ id: entry, at, text, data }) => ({
    id: entry, at, text: plainText(text), times: momentsIn(data),
  }));
}

export async function getComments(id: string): Promise<Comment[]> {
  const found = await client.listComments(id);
  return rowsOf(found.items, ["id", "by"], (note) => ({
    id: note.id, kind: note.kind, by: personOf(note.by), at: note.at ?? "", text: note.text ?? "",
    to: personOf(note.to ?? ""), isOpen: note.open === true,
  }));
}

export type Draft = { decision: string | null; values: Record<string, unknown>; comment: string };
export type Answer = { decision: string; data: Record<string, unknown> | null; comment: string };

export async function getDraft(id: string): Promise<Draft | null> {
  const found = await client.getDraft(id);
  const data = found.response_data;
  if ((data ?? found.comment ?? found.decision ?? null) === null) return null;
  return {
    decision: typeof found.decision === "string" ? found.decision : null,
    values: isObject(data) ? data : {},
    comment: typeof found.comment === "string" ? found.comment : "",
  };
}

export async function saveDraft(id: string, draft: Draft): Promise<void> {
  await client.saveDraft(id, { decision: draft.decision, response_data: draft.values, comment: draft.comment });
}

/** Decided after the undo window, unless it is undone. Sent twice with one key, it counts once. */
export async function place(hold: Hold, answer: Answer, key: string): Promise<Hold> {
  const body = {
    decision: answer.decision,
    response_data: answer.data,
    comment: answer.comment || null,
    request_hash: hold.requestHash,
  };
  return holdOf(await client.placeDecision(hold.id, body, { ifMatch: hold.version, key }));
}

/** Stores a file of a field (`table.column` in a table); gives the reference for the answer. */
export async function attach(id: string, field: string, file: File): Promise<unknown> {
  return (await client.attachFile(id, { [field]: file })).items[0]?.file;
}

const AT_ONCE = 6;

/** Those that could be undone, in their order. Raises if none could. */
export async function undoMany(ids: readonly string[]): Promise<Hold[]> {
  const found: Hold[] = [];
  let failed: unknown = null;
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const asked = await Promise.allSettled(ids.slice(from, from + AT_ONCE).map((id) => client.undoDecision(id)));
    for (const each of asked) {
      if (each.status === "fulfilled") found.push(holdOf(each.value));
      else failed = each.reason;
    }
  }
  if (found.length === 0 && failed !== null) throw failed;
  return found;
}

export async function claim(id: string): Promise<Hold> {
  return holdOf(await client.claimHold(id, {}));
}

export async function release(id: string): Promise<Hold> {
  return holdOf(await client.releaseHold(id));
}

export async function comment(id: string, text: string): Promise<void> {
  await client.commentOnHold(id, { text });
}

/** `assignee`: `user:kim`, `group:finance`, `role:lead`; a name alone is a person. */
export async function reassign(hold: Hold, assignee: string, reason: string): Promise<Hold> {
  const to = /^(user|group|role):/.test(assignee) ? assignee : `user:${assignee}`;
  return holdOf(await client.reassignHold(hold.id, { assignee: to, reason: reason || null }, { ifMatch: hold.version }));
}

export async function extend(hold: Hold, until: Date, reason: string): Promise<Hold> {
  return holdOf(await client.extendHold(hold.id, { expires_at: until.toISOString(), reason: reason || null }, { ifMatch: hold.version }));
}

export async function snooze(id: string, until: Date): Promise<void> {
  await client.snoozeHold(id, { until: until.toISOString() });
}

export async function unsnooze(id: string): Promise<void> {
  await client.unsnoozeHold(id);
}

/** The first view of each person is part of the history and counts in the metrics. Not tried again here: without a network nothing is sent. */
export async function markSeen(id: string): Promise<void> {
  await client.markSeen(id, { retries: 0 });
}

export async function watch(id: string): Promise<void> {
  await client.watchHold(id);
}

export async function unwatch(id: string): Promise<void> {
  await client.unwatchHold(id);
}

/** What this person marked: it is not part of the hold, which is the same for everyone. */
export type Marks = { watched: boolean; snoozedUntil: string | null };

export async function getMarks(hold: Hold): Promise<Marks> {
  const [watched, snoozed] = await Promise.all([inView("watching", hold), inView("snoozed", hold)]);
  return { watched: watched !== undefined, snoozedUntil: snoozed?.snoozed_until ?? null };
}

async function inView(view: View, hold: Hold): Promise<HoldWire | undefined> {
  return (await client.listHolds({ view, run: [hold.run], limit: PAGE })).items.find((each) => each.id === hold.id);
}

/** To who started the run, unless a person is named. The deadline pauses until there is a reply. */
export async function ask(id: string, text: string, person: string): Promise<Hold> {
  return holdOf(await client.askBack(id, { text, ...(person ? { to: /^\w+:/.test(person) ? person : `user:${person}` } : {}) }));
}

export async function reply(id: string, question: string, text: string): Promise<void> {
  await client.replyToQuestion(id, { question, text });
}

export async function withdrawQuestion(id: string, question: string): Promise<void> {
  await client.withdrawQuestion(id, { question });
}

/** People who can be named; empty where the directory is kept elsewhere. */
export async function listPeople(): Promise<string[]> {
  return (await client.listPeople()).items.filter((each) => each.active).map((each) => personOf(each.id));
}

/** `isChanged`: it is not as it was shown. `until`: it can be undone until then. */
export type BulkItem = { hold: string; done: boolean; why: string; isChanged: boolean; until: string | null };
export type BulkResult = { done: number; items: BulkItem[] };
/** So many at once. */
export const MOST_BULK = 500;

/** Holds that changed since they were shown are left out. A preview decides nothing. */
export async function decideMany(holds: Hold[], decision: string, note: string, preview: boolean): Promise<BulkResult> {
  const versions = Object.fromEntries(holds.map((each) => [each.id, each.version]));
  const found = await client.decideMany({ holds: holds.map((each) => each.id), decision, comment: note || null, preview, undo: true, versions });
  return { done: found.done, items: found.items.map((each) => ({ hold: each.hold, done: each.done, why: each.why ?? "", isChanged: each.code === "version_stale", until: each.placed_until ?? null })) };
}

export type Viewer = { person: string; until: number };

/** Who looks at it now. Told for 30 seconds, so it is repeated. */
export async function beat(id: string, editing: boolean): Promise<Viewer[]> {
  return (await client.reportPresence(id, { editing })).items.map(viewerOf);
}

/** The same, without being one of them. */
export async function listViewers(id: string): Promise<Viewer[]> {
  return (await client.listPresence(id)).items.map(viewerOf);
}

function viewerOf(wire: HoldViewerWire): Viewer {
  return { person: personOf(wire.person), until: Date.parse(wire.until ?? "") };
}

export async function leave(id: string): Promise<void> {
  await client.endPresence(id);
}

export type SavedView = { id: string; title: string; view: View; q: string; owner: string; shared: boolean };

export async function saveView(title: string, view: View, q: string, shared: boolean): Promise<string> {
  return (await client.saveView({ title, filters: { view, q: q || null }, shared })).id;
}

export async function dropView(id: string): Promise<void> {
  await client.deleteView(id);
}

export async function listViews(): Promise<SavedView[]> {
  const found = await client.listViews();
  return rowsOf(found.items, ["id", "title", "filters"], (each) => ({
    id: each.id, title: plainText(each.title), view: each.filters.view ?? "all", q: each.filters.q ?? "",
    owner: personOf(each.owner), shared: each.shared,
  }));
}

// ---- what the server says, in the words of the page

export function holdOf(given: HoldWire): Hold {
  const wire = requireFields(given, ["id", "version", "status", "created_at"]);
  return {
    id: wire.id,
    version: wire.version,
    title: plainText(wire.title || wire.prompt),
    prompt: plainText(wire.prompt),
    status: wire.status,
    type: wire.type,
    flow: wire.flow,
    run: wire.run,
    node: wire.node,
    priority: wire.priority,
    assignee: wire.assignee_type === "unrouted" ? "" : personOf(wire.assignee_resolved.value || wire.assignee || ""),
    why: wire.why === "unassigned" ? "" : plainText((wire.why ?? "").replace(/\buser:(?=\S)/g, "").replace(/\b(group|role):(?=\S)/g, "the $1 ")),
    options: (wire.options ?? []).map((each) => ({
      id: each.id,
      label: plainText(each.text || each.label),
      variant: each.variant ?? "secondary",
      requiresComment: each.requires_comment === true,
    })),
    context: wire.context,
    schema: wire.schema,
    createdAt: wire.created_at,
    startedBy: wire.started_by?.startsWith("user:") ? personOf(wire.started_by) : "",
    expiresAt: wire.expires_at,
    isPaused: wire.paused_at != null,
    claimedBy: personOf(wire.claimed_by ?? ""),
    claimUntil: wire.claim_until,
    placedBy: personOf(wire.placed_by ?? ""),
    placedLabel: placedLabelOf(wire),
    placedUntil: wire.placed_until,
    resumedAt: wire.resumed_at,
    requestHash: wire.request_hash,
    confidence: confidenceOf(wire.schema),
    isAgent: toolCallOf({ context: wire.context, schema: wire.schema }) !== null,
    comments: wire.comments ?? null,
    snoozedUntil: wire.snoozed_until ?? null,
    outcome: wire.status === "pending" ? null : outcomeOf(wire),
    shadow: shadowOf(wire),
  };
}

/** The label for people of the option that was chosen. */
function labelOf(options: HoldWire["options"], decision: string): string {
  const found = (options ?? []).find((each) => each.id === decision);
  return plainText(found ? found.text || found.label : decision);
}

function placedLabelOf({ options, placed_decision: decision }: HoldWire): string {
  return labelOf(options, decision ?? "");
}

function shadowOf({ status, shadow, options }: HoldWire): Shadow | null {
  // Whatever the server sends: who decides must not know it.
  if (!shadow || status === "pending" || status === "cancelled") return null;
  const decision = shadow.decision ?? "";
  return {
    judge: plainText(shadow.judge),
    label: labelOf(options, decision),
    confidence: shadow.confidence ?? null,
    reasoning: plainText(shadow.reasoning ?? ""),
    error: plainText(shadow.error ?? ""),
    agrees: shadow.agrees ?? null,
    isIntact: shadow.intact ?? true,
  };
}

function outcomeOf(wire: HoldWire): Outcome {
  const found = wire.resolution ?? {};
  const decision = String(found["effective_decision"] ?? found["decision"] ?? "");
  return {
    decision,
    label: labelOf(wire.options, decision),
    by: personOf(wire.resolved_by ?? wire.cancelled_by ?? ""),
    at: wire.resolved_at ?? wire.cancelled_at,
    comment: plainText(String(found["comment"] ?? wire.cancel_reason ?? "")),
    channel: String(found["channel"] ?? ""),
    isLate: found["late"] === true,
    isAutomatic: found["auto_expired"] === true,
    rule: String(found["rule"] ?? ""),
    onBehalfOf: personOf(String(found["on_behalf_of"] ?? "")),
    overrideReason: found["authority"] === "override" ? String(found["override_reason"] ?? "") : "",
    values: (wire.decided ?? []).map((each) => ({
      field: each.field, label: plainText(each.label), value: each.value, proposed: each.proposed, edited: each.edited ?? false,
    })),
  };
}

function confidenceOf(schema: unknown): number | null {
  const form = isObject(schema) ? schema["x-form"] : null;
  const sections = isObject(form) && Array.isArray(form["sections"]) ? (form["sections"] as unknown[]) : [];
  const found = sections.map((each) => (isObject(each) ? each["confidence"] : null)).filter((each) => typeof each === "number");
  return found.length > 0 ? Math.min(...found) : null;
}

/** As the history on the server writes it. */
export function personOf(name: string): string {
  return name.replace(/^(user|group|role):/, "").replace(/^system:.*/, "Holdfast").replace(/^policy:/, "the policy ");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
