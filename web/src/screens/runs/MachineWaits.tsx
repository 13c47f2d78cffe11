/** What a run waits for that no person answers: events, callbacks, child runs, messages of queues. */
import { Link } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import type { MachineWait } from "@/services/runs";
import { machineWord } from "@/words";
import { t } from "./text";

export function MachineWaits({ waits }: { waits: MachineWait[] }) {
  return waits.map((wait, index) => (
    <p key={index} className="small">
      {machineWord(wait).word}
      {": "}
      {wait.kind === "run" ? <Link to="/runs/$run" params={{ run: wait.name }} className="code">{wait.name.slice(0, 8)}</Link> : <span className="code">{wait.name}</span>}
      {wait.key ? ` (${wait.key})` : ""}
      {wait.until ? <> {"·"} {t("waitEnds")} <Moment at={wait.until} seconds /></> : null}
    </p>
  ));
}
