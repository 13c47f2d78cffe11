/** Visits of nodes that only one side has, or that went another way. */
import { useState } from "react";
import { shownName } from "@/models/names";
import { duration } from "@/models/time";
import type { Usage, VisitChange } from "@/services/comparison";
import { visitWord } from "@/words";
import { ChangeLine } from "./ChangeLine";
import { t } from "./text";

const PAGE = 100;
const KINDS: Record<string, "onlyFrom" | "onlyTo" | "changed"> = { removed: "onlyFrom", added: "onlyTo", changed: "changed" };

export function ComparedVisits({ visits, same }: { visits: VisitChange[]; same: number }) {
  const [shown, setShown] = useState(PAGE);
  if (visits.length === 0) return null;
  return (
    <section className="panel compare-part">
      <h2>{t("visits")} <span className="muted small">{t("sameVisits", { count: same })}</span></h2>
      <ul className="changes">
        {visits.slice(0, shown).map((each) => <VisitLine key={`${each.node} ${each.visit} ${each.kind}`} visit={each} />)}
      </ul>
      {visits.length > shown ? (
        <button type="button" className="button" onClick={() => setShown(shown + PAGE)}>{t("moreVisits", { count: visits.length - shown })}</button>
      ) : null}
    </section>
  );
}

function VisitLine({ visit }: { visit: VisitChange }) {
  const [before, after] = visit.outcomes.map(outcomeText);
  return (
    <li className="compared-visit">
      <p className="run-line">
        <strong>{shownName(visit.node)}</strong>
        {visit.visit > 1 ? <span className="muted small">{t("visit", { number: visit.visit })}</span> : null}
        <span className={`badge ${visit.kind === "added" ? "role-completed" : visit.kind === "removed" ? "role-failed" : "role-running"}`}>{t(KINDS[visit.kind] ?? "changed")}</span>
        <span className="small">
          {before === after || !before || !after ? before || after : <><del>{before}</del> <span aria-hidden="true">{"→"}</span> <ins>{after}</ins></>}
        </span>
        <span className="muted small">{[visit.before, visit.after].filter((each) => each !== null).map(usageText).join(" → ")}</span>
      </p>
      {visit.kind === "changed" && visit.changes.length > 0 ? (
        <ul className="changes">
          {visit.changes.slice(0, PAGE).map((each) => <ChangeLine key={each.path} change={each} />)}
        </ul>
      ) : null}
    </li>
  );
}

const OUTCOMES: Record<string, string> = { success: "done", fail: "failed" };

function outcomeText(outcome: string): string {
  return outcome && visitWord(OUTCOMES[outcome] ?? outcome).word;
}

function usageText(usage: Usage): string {
  return [duration(usage.ms), usage.tokens > 0 ? t("tokenCount", { count: usage.tokens }) : ""].filter(Boolean).join(", ");
}
