/** Tells screen readers what has become of the run, the latest state only and at most every ten seconds. */
import { useEffect, useRef, useState } from "react";
import { Summary } from "@/models/summary";
import type { Run } from "@/services/runs";
import { statusWord } from "@/words";
import { t } from "./text";

export function RunSaid({ run }: { run: Run }) {
  const [said, say] = useState("");
  const latest = useRef(run);
  const summary = useRef<Summary | null>(null);
  useEffect(() => {
    const made = new Summary(() => say(t("isNow", { status: statusWord(latest.current).word })));
    summary.current = made;
    return () => made.stop();
  }, []);
  useEffect(() => {
    if (latest.current.status !== run.status) summary.current?.add(run.id);
    latest.current = run;
  }, [run]);
  return (
    <output className="away" data-live-summary="">
      {said}
    </output>
  );
}
