/** The panels of Operations, the right that each needs, and words made of their numbers. */
import type { Figures, Lease, Schedule, Token, Worker } from "@/services/operations";
import type { Right } from "@/services/session";
import type { Shown } from "@/words";
import { t } from "./text";

export const PANELS = {
  workers: "admin:manage",
  backlog: "admin:manage",
  metrics: "holds:manage",
  schedules: "schedules:read",
  dead: "runs:read",
  notifications: "holds:manage",
  queues: "queues:read",
  audit: "audit:read",
  tokens: "admin:manage",
  members: "holds:read",
} as const satisfies Record<string, Right>;
export type PanelName = keyof typeof PANELS;

/** A link is shown only to people with its right. */
export function shownPanels(rights: ReadonlySet<Right>): PanelName[] {
  return (Object.keys(PANELS) as PanelName[]).filter((name) => rights.has(PANELS[name]));
}

/** Without a name the first that the person may see. */
export function panelOf(name: string | undefined, rights: ReadonlySet<Right> = new Set()): PanelName | null {
  if (name === undefined) return shownPanels(rights)[0] ?? "workers";
  return Object.hasOwn(PANELS, name) ? (name as PanelName) : null;
}

/** The number beside a tab, where there is one worth a look. */
export function countOf(panel: PanelName, figures: Figures | undefined): number {
  if (figures === undefined) return 0;
  if (panel === "backlog") return figures.lanes.reduce((sum, each) => sum + each.ready + each.inLine, 0);
  if (panel === "dead") return figures.dead;
  return panel === "notifications" ? figures.noticesDead : 0;
}

const AGES: Record<string, "under_1h" | "under_1d" | "under_7d" | "older"> = { "under 1h": "under_1h", "under 1d": "under_1d", "under 7d": "under_7d", "7d and more": "older" };

/** Also for an age that only a newer server has: its own name. */
export function ageWord(age: string): string {
  return Object.hasOwn(AGES, age) ? t(AGES[age]!) : age;
}

export function workerWord(worker: Worker): Shown {
  if (!worker.alive) return { word: t("workerLost"), role: "failed", icon: "cross" };
  if (worker.draining) return { word: t("workerDraining"), role: "sleeping", icon: "pause" };
  return { word: t("workerAlive"), role: "completed", icon: "check" };
}

export function leaseWord(lease: Lease): Shown {
  if (lease.expired) return { word: t("leaseExpired"), role: "interrupted", icon: "broken" };
  return { word: t("leaseHeld"), role: "running", icon: "play" };
}

export function scheduleWord(schedule: Schedule): Shown {
  if (schedule.paused) return { word: t("schedulePaused"), role: "interrupted", icon: "pause" };
  if (schedule.over) return { word: t("scheduleOver"), role: "cancelled", icon: "bar" };
  if (schedule.trouble) return { word: t("scheduleTrouble"), role: "failed", icon: "cross" };
  return { word: t("scheduleOn"), role: "completed", icon: "check" };
}

export function tokenWord(token: Token): Shown {
  if (token.status === "active") return { word: t("tokenActive"), role: "completed", icon: "check" };
  if (token.status === "expired") return { word: t("tokenExpired"), role: "interrupted", icon: "broken" };
  return { word: token.status === "revoked" ? t("tokenRevoked") : token.status, role: "cancelled", icon: "bar" };
}

/** Of the largest, in percent: the length of its bar. Something is never nothing. */
export function shareOf(value: number, largest: number): number {
  return value <= 0 || largest <= 0 ? 0 : Math.max(2, Math.round((100 * value) / largest));
}
