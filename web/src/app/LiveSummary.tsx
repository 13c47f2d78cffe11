/** Tells screen readers how many questions others have changed, and on the page of runs how many runs; summed. */
import { useEffect, useMemo, useState } from "react";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { useChangedRuns, useHoldChanges } from "@/live/useLive";
import { Summary } from "@/models/summary";
import { useSession } from "./useSession";

const t = textOf(shell);

export function LiveSummary() {
  const { person } = useSession();
  const { said, add } = useSummary("changed");
  useHoldChanges((change) => {
    // That someone has looked at it is no change.
    if (change.actor !== person && !change.action.endsWith(".viewed")) add(change.hold);
  });
  return <Said text={said} />;
}

/** Where runs are listed: elsewhere nobody waits for them. */
export function LiveRunSummary() {
  const { said, add } = useSummary("runsChanged");
  useChangedRuns(add);
  return <Said text={said} />;
}

function useSummary(key: "changed" | "runsChanged"): { said: string; add: (id: string) => void } {
  const [said, say] = useState("");
  const summary = useMemo(() => new Summary((count) => say(t(key, { count }))), [key]);
  useEffect(() => () => summary.stop(), [summary]);
  return { said, add: (id) => summary.add(id) };
}

function Said({ text }: { text: string }) {
  return (
    <output className="away" data-live-summary="">
      {text}
    </output>
  );
}
