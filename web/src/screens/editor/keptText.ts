/** Unsaved work, kept in this browser for the person until it is saved, or they sign out. */
import { DOCUMENTS, hasSignedOut } from "@/services/session";

export type KeptText = { text: string; etag: string };

function keyOf(tenant: string, person: string, name: string): string {
  return `${DOCUMENTS}${tenant}.${person}.${name}`;
}

export function keepText(tenant: string, person: string, name: string, kept: KeptText | null): void {
  const key = keyOf(tenant, person, name);
  if (hasSignedOut()) return;
  try {
    if (kept === null) window.localStorage.removeItem(key);
    else window.localStorage.setItem(key, JSON.stringify(kept));
  } catch {
    // The storage is full or off: the text is still on the page.
  }
}

export function keptText(tenant: string, person: string, name: string): KeptText | null {
  try {
    const found = JSON.parse(window.localStorage.getItem(keyOf(tenant, person, name)) ?? "null") as unknown;
    if (typeof found !== "object" || found === null) return null;
    const { text, etag } = found as Record<string, unknown>;
    return typeof text === "string" && typeof etag === "string" ? { text, etag } : null;
  } catch {
    return null;
  }
}
