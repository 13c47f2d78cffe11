/** Who is signed in, and what they may do. */
import type { Right, SessionWire } from "@client";
import { addressOf, client } from "./client";

export type { Right };
export type Session = { person: string; tenant: string; rights: ReadonlySet<Right>; canSignOut: boolean; csrf: string; now: string; tenants: string[]; webRelease: string; directory: "store" | "other" | "none" };

export async function getSession(): Promise<Session> {
  const found = await client.getSession();
  client.bindSession(found);
  return sessionOf(found);
}

export function sessionOf(wire: SessionWire): Session {
  return {
    person: wire.subject.replace(/^user:/, ""),
    tenant: wire.tenant,
    rights: new Set(wire.rights),
    canSignOut: wire.method === "session",
    csrf: wire.csrf ?? "",
    now: wire.now,
    tenants: wire.tenants ?? [],
    webRelease: wire.web_release ?? "",
    directory: wire.directory ?? "none",
  };
}

/** Where a person signs in and comes back from to this very address. */
export function signInAddress(): string {
  const { pathname, search } = window.location;
  return `${addressOf("/sign-in")}?next=${encodeURIComponent(pathname + search)}`;
}

/** Nothing of the old tenant stays in this tab: what was typed there neither. */
export async function switchTenant(tenant: string): Promise<void> {
  await client.switchTenant({ tenant });
  window.sessionStorage.clear();
  window.location.assign(addressOf("/"));
}

/** What was typed and not sent, by the beginning of its name. It outlives a session that ends by itself, for the same person. */
export const DRAFTS = "holdfast.draft.";
export const DOCUMENTS = "holdfast.document.";
/** When decisions of this person are final, by hold: signing out before that undoes them. Known to all tabs. */
const PLACED = "holdfast.placed";
let isSignedOut = false;
/** Tells the other tabs of this browser. */
const LEAVING = "holdfast.signed-out";

/** The other tabs go to the sign-in page with the one that signs out, and show nothing more. */
export function followSignOut(): void {
  new BroadcastChannel(LEAVING).addEventListener("message", () => {
    // The tab that signs out gets its own message, and leaves by itself.
    if (isSignedOut) return;
    isSignedOut = true;
    window.location.assign(signInAddress());
  });
}

/** Whether this person has signed out: nothing more is kept in the browser then. */
export function hasSignedOut(): boolean {
  return isSignedOut;
}

export function notePlaced(holds: readonly string[], until: number): void {
  keepPlaced({ ...placed(), ...Object.fromEntries(holds.map((each) => [each, until])) });
}

export function forgetPlaced(holds: readonly string[]): void {
  keepPlaced(Object.fromEntries(Object.entries(placed()).filter(([each]) => !holds.includes(each))));
}

/** When all of them are final. */
export function placedUntil(): number {
  return Math.max(0, ...Object.values(placed()));
}

function placed(): Record<string, number> {
  try {
    const found: unknown = JSON.parse(window.localStorage.getItem(PLACED) ?? "{}");
    const entries = typeof found === "object" && found !== null ? Object.entries(found) : [];
    return Object.fromEntries(entries.filter((each): each is [string, number] => typeof each[1] === "number"));
  } catch {
    return {};
  }
}

/** Those of yesterday are not kept. */
function keepPlaced(all: Record<string, number>): void {
  const last = Math.max(0, ...Object.values(all));
  const recent = Object.entries(all).filter(([, until]) => until > last - 86_400_000);
  window.localStorage.setItem(PLACED, JSON.stringify(Object.fromEntries(recent)));
}

/** `ended`: called when the session is over, before the page is left. */
export async function signOut(ended: () => void): Promise<void> {
  await client.endSession();
  isSignedOut = true;
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has only this origin
  new BroadcastChannel(LEAVING).postMessage("");
  ended();
  window.localStorage.removeItem(PLACED);
  for (const storage of [window.sessionStorage, window.localStorage]) {
    for (const name of Object.keys(storage)) if (name.startsWith(DRAFTS) || name.startsWith(DOCUMENTS)) storage.removeItem(name);
  }
  window.location.assign(addressOf("/sign-in"));
}
