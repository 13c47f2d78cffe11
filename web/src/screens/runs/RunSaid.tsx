/** Tells screen readers what has become of the run, the latest state only and at most every ten seconds. */
import { useEffect, useRef, useState } from "react";
import { Summary } from "@/models/summary";
import type { Run } from "@/services/runs";
import { runWord } from "@/words";
import { t } from "./text";

export function RunSaid({ run }: { run: Run }) {
  const [said, say] = useState("");
  const latest = useRef(run.status);
  const summary = useRef<Summary | null>(null);
  useEffect(() => {
    const made = new Summary(() => say(t("isNow", { status: runWord(latest.current).word })));
    summary.current = made;
    return () => made.stop();
  }, []);
  useEffect(() => {
    if (latest.current !== run.status) summary.current?.add(run.id);
    latest.current = run.status;
  }, [run.id, run.status]);
  return (
    <output className="away" data-live-summary="">
      {said}
    </output>
  );
}
