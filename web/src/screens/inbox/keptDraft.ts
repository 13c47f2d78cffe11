/** What was typed when the session ended, in this tab only. Another person who signs in does not get it. */
import { useState } from "react";
import { useSession } from "@/app/useSession";
import { readJson, writeJson } from "@/models/json";
import type { Draft } from "@/services/holds";
import { DRAFTS, hasSignedOut } from "@/services/session";

export function keepDraft(hold: string, person: string, draft: Draft): void {
  if (hasSignedOut()) return;
  try {
    window.sessionStorage.setItem(DRAFTS + hold, writeJson({ person, draft }));
  } catch {
    // The storage is full or switched off: the draft that was saved last is still on the server.
  }
}

export function dropDraft(hold: string): void {
  window.sessionStorage.removeItem(DRAFTS + hold);
}

export function keptDraft(hold: string, person: string): Draft | null {
  const text = window.sessionStorage.getItem(DRAFTS + hold);
  if (text === null) return null;
  const kept = parsed(text);
  if (kept?.person === person) return kept.draft;
  dropDraft(hold);
  return null;
}

/** A comment that is not sent yet: it survives another tab of the page, a reload and a new sign-in. */
export function useKeptText(name: string): [string, (text: string) => void] {
  const { person } = useSession();
  const [text, setText] = useState(() => keptDraft(name, person)?.comment ?? "");
  const change = (next: string) => {
    setText(next);
    if (next) keepDraft(name, person, { decision: null, values: {}, comment: next });
    else dropDraft(name);
  };
  return [text, change];
}

function parsed(text: string): { person: string; draft: Draft } | null {
  try {
    return readJson(text) as { person: string; draft: Draft };
  } catch {
    return null;
  }
}
