/** What was typed when the session ended, in this tab only. Another person who signs in does not get it. */
import { readJson, writeJson } from "@/models/json";
import type { Draft } from "@/services/holds";

const PREFIX = "holdfast.draft.";

export function keepDraft(hold: string, person: string, draft: Draft): void {
  try {
    window.sessionStorage.setItem(PREFIX + hold, writeJson({ person, draft }));
  } catch {
    // The storage is full or switched off: the draft that was saved last is still on the server.
  }
}

export function dropDraft(hold: string): void {
  window.sessionStorage.removeItem(PREFIX + hold);
}

export function keptDraft(hold: string, person: string): Draft | null {
  const text = window.sessionStorage.getItem(PREFIX + hold);
  if (text === null) return null;
  const kept = parsed(text);
  if (kept?.person === person) return kept.draft;
  dropDraft(hold);
  return null;
}

function parsed(text: string): { person: string; draft: Draft } | null {
  try {
    return readJson(text) as { person: string; draft: Draft };
  } catch {
    return null;
  }
}
