/** What can be done with a run. Each first opens a dialog that says what would happen. */
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useRight } from "@/app/useSession";
import { useKeepFocus } from "@/components/useKeepFocus";
import { useOffline } from "@/live/useLive";
import type { Run, RunAction } from "@/services/runs";
import { word } from "@/words";
import { ACTION_WORDS, ActionDialog } from "./ActionDialog";
import { t } from "./text";

const ENDED = new Set(["completed", "failed", "cancelled"]);

function actionsOf(run: Run): RunAction[] {
  const first: RunAction[] = run.status === "failed" ? ["retry"] : run.status === "resumable" ? ["resume"] : [];
  return [...first, "fork", ...(run.status === "cancelled" ? [] : ["rewind" as const]), ...(ENDED.has(run.status) ? [] : ["cancel" as const])];
}

const LOOKS: Partial<Record<RunAction, string>> = { retry: "primary", resume: "primary", cancel: "danger" };

/** `at`: the record that the page shows; a fork and a rewind start there. */
export function RunActions({ run, at }: { run: Run; at: number | undefined }) {
  const mayWrite = useRight("runs:write");
  const mayStart = useRight("flows:read");
  const [asked, setAsked] = useState<RunAction | null>(null);
  const isOffline = useOffline();
  const bar = useRef<HTMLSpanElement>(null);
  // A run that was retried cannot be retried again.
  const keep = useKeepFocus(() => bar.current?.querySelector<HTMLElement>("button:enabled, a"));
  const isOn = mayWrite && !run.readOnly;
  useKeys(isOn && !isOffline ? [{ keys: "f", group: t("title"), label: word("fork"), run: () => setAsked("fork") }] : []);
  if (!isOn) return null;
  const branches = asked === "fork" || asked === "rewind";
  return (
    <span ref={bar} className="run-actions" {...keep}>
      {actionsOf(run).map((action) => (
        <button key={action} type="button" className={`button ${LOOKS[action] ?? ""}`} disabled={isOffline} onClick={() => setAsked(action)}>
          {word(ACTION_WORDS[action])}
        </button>
      ))}
      {mayStart ? <Link to="/flows/$name/start" params={{ name: run.flow }} search={{ from: run.id }} className="button">{t("startAgain")}</Link> : null}
      {asked ? <ActionDialog run={run} action={asked} record={branches ? at : undefined} onClose={() => setAsked(null)} /> : null}
    </span>
  );
}
