/** What was typed, saved one second after the last key. */
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState } from "react";
import { signedOut } from "@/app/flag";
import { useSession } from "@/app/useSession";
import { serverNow } from "@/components/useNow";
import { useOffline } from "@/live/useLive";
import { writeJson } from "@/models/json";
import { failureOf } from "@/services/client";
import { type Draft, saveDraft } from "@/services/holds";
import { dropDraft, keepDraft } from "./keptDraft";

const QUIET = 1000;
export type DraftState = { kind: "none" | "saved" | "failed"; at: number };
const NOTHING = { kind: "none", at: 0, text: "" } as const;

/** `unsaved`: it was kept in this tab only, so it is saved even if nothing more is typed. Without a connection it waits. */
export function useDraft(hold: string, draft: Draft, unsaved: boolean, onSaved: () => void): { state: DraftState; forget: () => void } {
  const { person } = useSession();
  const client = useQueryClient();
  const isOffline = useOffline();
  const text = writeJson(draft);
  const first = useRef(unsaved ? "" : text);
  const over = useRef(false);
  const [state, setState] = useState<DraftState & { text: string }>(NOTHING);
  const saved = useEffectEvent((sent: string, what: Draft) => {
    setState({ kind: "saved", at: serverNow(), text: sent });
    if (sent !== text) return;
    // Nothing was typed while it was sent.
    dropDraft(hold);
    client.setQueryData(["draft", hold], what);
    onSaved();
  });
  const save = useEffectEvent(async () => {
    if (over.current) return;
    try {
      await saveDraft(hold, draft);
      first.current = text;
      saved(text, draft);
    } catch (error) {
      keepDraft(hold, person, draft);
      setState({ kind: "failed", at: serverNow(), text });
      if (failureOf(error).kind === "signed-out") signedOut.raise();
    }
  });
  useEffect(() => {
    if (text === first.current || isOffline) return undefined;
    const timer = setTimeout(() => void save(), QUIET);
    return () => clearTimeout(timer);
  }, [text, isOffline]);
  const leaving = useEffectEvent(() => {
    if (!over.current && text !== first.current) keepDraft(hold, person, draft);
  });
  useEffect(() => {
    // Typed less than a second ago: it waits in this tab, and is saved when the hold is opened again.
    const left = () => leaving();
    window.addEventListener("pagehide", left);
    return () => {
      window.removeEventListener("pagehide", left);
      left();
    };
  }, []);
  // What is typed without a connection is not in the draft that was saved.
  const isBehind = isOffline && state.kind === "saved" && state.text !== text;
  return { state: isBehind ? { ...state, kind: "failed" } : state, forget: () => { over.current = true; dropDraft(hold); } };
}
