/** What operators watch and act on: workers, backlog, schedules, dead letters, notifications, queues, audit, tokens, members. */
import type { AuditWire, ScheduleWire, Spread, TokenWire, WorkerWire } from "@client";
import { momentsIn } from "@/models/sentence";
import { plainText } from "@/models/values";
import { client, rowsOf } from "./client";
import { personOf } from "./holds";

export type Worker = {
  name: string;
  host: string;
  release: string;
  alive: boolean;
  draining: boolean;
  seenAt: string | null;
  lanes: string[];
  versions: [flow: string, version: string][];
  busy: number;
  concurrency: number;
  endedPerSecond: number;
  skewSeconds: number;
  /** Entities that stay locked by code that still runs after its run was stopped. */
  blocked: BlockedEntity[];
  /** Runs that wait because a large value cannot be stored, and why. */
  unstored: [run: string, why: string][];
};
export type BlockedEntity = { entity: string; run: string; flow: string; nodes: string; since: string };
/** A run that a process has. `expired`: the process did not renew it, and another worker may take the run over. */
export type Lease = { run: string; flow: string; version: string; tenant: string; worker: string; term: number; until: string | null; expired: boolean; recoveries: number };
export type Lane = { lane: string; ready: number; running: number; inLine: number; oldestSeconds: number };
export type Unserved = { lane: string; flow: string; version: string; ready: number; oldestSeconds: number };
export type Figures = { lanes: Lane[]; unserved: Unserved[]; dead: number; noticesDead: number };
export type Limit = { name: string; concurrency: number | null; rate: string; running: number; waiting: number };
export type Times = { count: number; p50: number | null; p95: number | null };
export type HoldFigures = { byAge: [age: string, count: number][]; decision: Times; view: Times; claim: Times; breachRate: number | null };
export type Schedule = {
  name: string;
  flow: string;
  when: string;
  zone: string;
  paused: boolean;
  over: boolean;
  reason: string;
  nextAt: string | null;
  lastAt: string | null;
  lastRun: string | null;
  trouble: string;
};
export type DeadRun = { id: string; flow: string; version: string; endedAt: string | null; error: string };
export type Death = { worker: string; at: string | null; record: number; nodes: string[]; unknown: string };
export type NoticeState = "waiting" | "sent" | "failed" | "unneeded";
export type StoredNotice = {
  id: number;
  at: string | null;
  topic: string;
  hold: string | null;
  state: string;
  attempts: number;
  dueAt: string | null;
  error: string;
};
export type MetricName = "time_to_decision" | "backlog" | "breaches" | "runs";
/** `values`: for each point one number for each column. `readSince`: what is older was not read. */
export type Metric = { columns: string[]; points: { at: string; values: (number | null)[] }[]; readSince: string | null };
export type Queue = { scope: string; queue: string; ready: number; delayed: number; claimed: number; dead: number; oldestSeconds: number };
export type AuditRecord = { seq: number; at: string; actor: string; action: string; text: string; times: string[]; module: string; run: string; hold: string; data: unknown; hash: string };
/** Parts of the text, the actor and the action; `since` and `until`: instants. */
export type AuditFilter = { text: string; actor: string; action: string; since: string | null; until: string | null };
export type Verification = { whole: boolean; records: number; seq: number | null; why: string };
export type Token = {
  id: string;
  subject: string;
  roles: string[];
  status: string;
  note: string;
  createdAt: string;
  expiresAt: string | null;
  lastUsedAt: string | null;
};
export type Away = { substitute: string; since: string | null; until: string | null };
export type Person = { id: string; name: string; email: string; active: boolean; away: Away | null };
export type Group = { key: string; name: string; members: string[] };

export async function listWorkers(): Promise<Worker[]> {
  return rowsOf((await client.listWorkers()).items, ["name"], workerOf);
}

export async function listLeases(worker: string | undefined, cursor: string | null): Promise<{ items: Lease[]; next: string | null }> {
  const page = await client.listLeases({ worker, cursor, limit: 50 });
  const items = rowsOf(page.items, ["run", "flow"], (each) => ({
    run: each.run,
    flow: each.flow,
    version: each.version,
    tenant: each.tenant,
    worker: each.worker,
    term: each.term,
    until: each.until,
    expired: each.expired,
    recoveries: each.recoveries,
  }));
  return { items, next: page.next ?? null };
}

export async function getFigures(): Promise<Figures> {
  const wire = await client.getFigures();
  return {
    lanes: wire.lanes.map((each) => ({
      lane: each.lane,
      ready: each.ready,
      running: each.running,
      inLine: each.limited,
      oldestSeconds: each.oldest_seconds,
    })),
    unserved: wire.unserved_runs.map((each) => ({
      lane: each.lane,
      flow: each.flow,
      version: each.version,
      ready: each.ready,
      oldestSeconds: each.oldest_seconds,
    })),
    dead: wire.dead,
    noticesDead: wire.outbox_dead,
  };
}

export async function listLimits(): Promise<Limit[]> {
  return rowsOf((await client.listLimits()).items, ["name"], (each) => ({
    name: each.name,
    concurrency: each.concurrency,
    rate: each.rate ?? "",
    running: each.running,
    waiting: each.waiting,
  }));
}

export async function getHoldFigures(): Promise<HoldFigures> {
  const wire = await client.holdMetrics();
  return {
    byAge: Object.entries(wire.pending_by_age),
    decision: timesOf(wire.time_to_decision),
    view: timesOf(wire.time_to_view),
    claim: timesOf(wire.time_to_claim),
    breachRate: wire.breach_rate,
  };
}

export async function listSchedules(cursor: string | null): Promise<{ items: Schedule[]; next: string | null }> {
  const page = await client.listSchedules({ limit: 100, cursor });
  return { items: rowsOf(page.items, ["name"], scheduleOf), next: page.next ?? null };
}

export async function nextTimes(schedule: string): Promise<string[]> {
  return (await client.nextOfSchedule(schedule, { count: 5 })).items;
}

export async function pauseSchedule(name: string, reason: string): Promise<void> {
  await client.pauseSchedule(name, { reason });
}

export async function resumeSchedule(name: string): Promise<void> {
  await client.resumeSchedule(name);
}

/** The id of the run that it started. */
export async function triggerSchedule(name: string): Promise<string> {
  return (await client.triggerSchedule(name, {})).run;
}

export async function listDeadRuns(): Promise<DeadRun[]> {
  return rowsOf((await client.listDeadRuns({ limit: 200 })).items, ["id", "flow"], (each) => ({
    id: each.id,
    flow: each.flow,
    version: each.version,
    endedAt: each.updated_at ?? null,
    error: plainText(each.error ?? ""),
  }));
}

export async function listDeaths(run: string): Promise<Death[]> {
  return (await client.getDeadRun(run)).deaths.map((each) => ({
    worker: each.worker,
    at: each.at,
    record: each.head,
    nodes: each.nodes,
    unknown: each.unknown,
  }));
}

export async function retryDeadRun(run: string): Promise<void> {
  await client.retryDeadRun(run);
}

export async function discardDeadRun(run: string, reason: string): Promise<void> {
  await client.discardDeadRun(run, { reason });
}

export async function listNotices(state: NoticeState, cursor: string | null): Promise<{ items: StoredNotice[]; next: string | null }> {
  const page = await client.listNotices({ state, limit: 50, cursor });
  const items = rowsOf(page.items, ["state"], (each) => ({
    id: each.id,
    at: each.at,
    topic: each.topic,
    hold: each.hold_id,
    state: each.state,
    attempts: each.attempts,
    dueAt: each.due_at,
    error: plainText(each.error ?? ""),
  }));
  return { items, next: page.next ?? null };
}

export async function getMetric(name: MetricName, window: { from: Date; to: Date; stepHours: number }): Promise<Metric> {
  const query = { from: window.from.toISOString(), to: window.to.toISOString(), step: `${window.stepHours}h` };
  const wire = await client.getMetric(name, query);
  return { columns: wire.columns, points: wire.points, readSince: wire.read_since ?? null };
}

export async function replayNotice(id: number): Promise<void> {
  await client.replayNotice(String(id));
}

export const MOST_REPLAYED = 500;
/** `sends`: false where its question does not need it any more. */
export type Replayed = { id: number; done: boolean; sends: boolean; text: string };

/** What would happen to each, or what has happened. */
export async function replayMany(notices: number[], preview: boolean): Promise<Replayed[]> {
  const found = await client.replayNotices({ notices, preview });
  return found.items.map((each) => ({ id: each.id, done: each.done, sends: each.sends ?? false, text: plainText(each.text) }));
}

export async function listQueues(): Promise<Queue[]> {
  return rowsOf((await client.listQueues()).items, ["queue"], (each) => ({
    scope: each.scope,
    queue: each.queue,
    ready: each.ready,
    delayed: each.delayed,
    claimed: each.claimed,
    dead: each.dead,
    oldestSeconds: each.oldest_seconds,
  }));
}

export type DeadMessage = { id: string; scope: string; queue: string; type: string; run: string; error: string; attempts: number; payload: unknown };

/** The newest messages of a queue that were given up. */
export async function listDeadMessages(scope: string, queue: string): Promise<DeadMessage[]> {
  const found = await client.listMessages(scope, queue, { state: ["dead"], limit: MOST_MESSAGES });
  return rowsOf(found.items, ["id"], (each) => ({ id: each.id, scope, queue, type: each.type, run: each.run ?? "", error: each.error ?? "", attempts: each.attempts, payload: each.payload }));
}

export const MOST_MESSAGES = 50;

export async function replayMessage({ scope, queue, id }: DeadMessage): Promise<void> {
  await client.requeueMessage(scope, queue, id);
}

export async function discardMessage({ scope, queue, id }: DeadMessage): Promise<void> {
  await client.withdrawMessage(scope, queue, id);
}

/** The newest first. A page without a match may have a next one: the server reads a part of the records at a time. */
export async function listAudit(filter: AuditFilter, cursor: string | null): Promise<{ items: AuditRecord[]; next: string | null }> {
  const { text, actor, action, since, until } = filter;
  const page = await client.listAudit({ text, actor_part: actor, action_part: action, since, until, order: "newest", limit: 50, cursor });
  return { items: rowsOf(page.items, ["seq", "action"], recordOf), next: page.next ?? null };
}

export async function verifyAudit(): Promise<Verification> {
  const wire = await client.verifyAudit({});
  return { whole: wire.whole, records: wire.records, seq: wire.seq, why: wire.why };
}

export async function listTokens(): Promise<Token[]> {
  return rowsOf((await client.listTokens()).items, ["id"], tokenOf);
}

/** The secret. The server does not keep it: it is given once. */
export async function createToken(subject: string, role: string, note: string): Promise<string> {
  return (await client.createToken({ subject, roles: [role], note })).token ?? "";
}

export async function revokeToken(id: string): Promise<void> {
  await client.revokeToken(id);
}

export async function listPeople(): Promise<Person[]> {
  return rowsOf((await client.listPeople()).items, ["id"], (each) => ({
    id: personOf(each.id),
    name: each.name,
    email: each.email,
    active: each.active,
    away: each.away && {
      substitute: personOf(each.away.substitute),
      since: each.away.since ?? null,
      until: each.away.until ?? null,
    },
  }));
}

export async function putAbsence(person: string, away: Away): Promise<void> {
  await client.putAway(person, { substitute: away.substitute, since: away.since, until: away.until });
}

export async function endAbsence(person: string): Promise<void> {
  await client.endAway(person);
}

export async function listGroups(): Promise<Group[]> {
  return rowsOf((await client.listGroups()).items, ["key"], (each) => ({ key: each.key, name: each.name, members: each.members.map(personOf) }));
}

function workerOf(wire: WorkerWire): Worker {
  return {
    name: wire.name,
    host: `${wire.host}:${wire.pid}`,
    release: wire.release,
    alive: wire.alive,
    draining: wire.draining,
    seenAt: wire.seen_at,
    lanes: wire.lanes ?? [],
    versions: Object.entries(wire.versions).map(([version, flow]) => [flow, version]),
    busy: wire.busy,
    concurrency: wire.concurrency,
    endedPerSecond: wire.ended_per_second,
    // Not -0, which would be shown with its sign.
    skewSeconds: Math.round(wire.skew_seconds * 10) / 10 + 0,
    blocked: (wire.blocked_entities ?? []).map((each) => ({ ...each, entity: plainText(each.entity), nodes: plainText(each.nodes) })),
    unstored: Object.entries(wire.unstored ?? {}).map(([run, why]) => [run, plainText(why)]),
  };
}

function timesOf(wire: Spread): Times {
  return { count: wire.count, p50: wire.p50 ?? null, p95: wire.p95 ?? null };
}

function scheduleOf(wire: ScheduleWire): Schedule {
  return {
    name: wire.name,
    flow: wire.flow,
    when: wire.cron ?? wire.every ?? wire.at ?? "",
    zone: wire.zone,
    paused: wire.paused,
    over: wire.over,
    reason: plainText(wire.reason),
    nextAt: wire.next_at,
    lastAt: wire.last_at,
    lastRun: wire.last_run,
    trouble: plainText(wire.trouble),
  };
}

function recordOf(wire: AuditWire): AuditRecord {
  return {
    seq: wire.seq,
    at: wire.at,
    actor: wire.actor,
    action: wire.action,
    text: plainText(wire.text),
    times: momentsIn(wire.data),
    module: wire.module,
    run: wire.execution_id ?? "",
    hold: wire.checkpoint_id ?? "",
    data: wire.data,
    hash: wire.hash,
  };
}

function tokenOf(wire: TokenWire): Token {
  return {
    id: wire.id,
    subject: wire.subject,
    roles: wire.roles,
    status: wire.status,
    note: plainText(wire.note),
    createdAt: wire.created_at,
    expiresAt: wire.expires_at ?? null,
    lastUsedAt: wire.last_used_at ?? null,
  };
}
