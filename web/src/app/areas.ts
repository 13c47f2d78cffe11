/** The areas of the app, with the rights of which each needs one, and the keys that open it. */
import type { shell } from "@/locales/en/shell";
import type { Right } from "@/services/session";

export type Area = { to: "/inbox" | "/runs" | "/flows" | "/operations"; label: keyof typeof shell; rights: readonly Right[]; keys: string };

export const AREAS: readonly Area[] = [
  { to: "/inbox", label: "inbox", rights: ["holds:read"], keys: "g i" },
  { to: "/runs", label: "runs", rights: ["runs:read"], keys: "g r" },
  { to: "/flows", label: "flows", rights: ["flows:read"], keys: "g f" },
  { to: "/operations", label: "operations", rights: ["admin:manage", "schedules:read", "queues:read", "audit:read", "holds:manage"], keys: "g o" },
];
