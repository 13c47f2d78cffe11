/** Two records side by side, of this run or of another: values by path, texts by line, visits, cost. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import type { Sides } from "@/models/diff";
import { shortVersion } from "@/models/names";
import { type ComparedSide, type Comparison, type ValueChanges, compare } from "@/services/comparison";
import type { Run } from "@/services/runs";
import { RUN_STATUSES, runWord } from "@/words";
import { ChangeLine } from "./ChangeLine";
import { ComparedUsage } from "./ComparedUsage";
import { ComparedVisits } from "./ComparedVisits";
import { CompareChoice } from "./CompareChoice";
import { t } from "./text";

type CompareProps = { run: Run; sides: Sides; last: number };

export function Compare({ run, sides, last }: CompareProps) {
  const { from, to, isReverse } = sides;
  const own = { run: run.id, record: from };
  const found = useQuery({
    queryKey: ["run", run.id, "compare", from, to.run, to.record, isReverse],
    queryFn: () => (isReverse ? compare(to, own) : compare(own, to)),
    placeholderData: (old) => old,
    retry: false,
  });
  return (
    <section className="compare" aria-label={t("compare")}>
      <CompareChoice run={run} sides={sides} last={last} />
      {found.isPending ? <Skeleton rows={3} /> : null}
      {found.isError ? <Problem error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.data && !found.isError ? <Found found={found.data} /> : null}
    </section>
  );
}

function Found({ found }: { found: Comparison }) {
  return (
    <>
      <div className="compare-sides">
        <Side side={found.from} title={t("compareFrom")} />
        <Side side={found.to} title={t("compareTo")} />
      </div>
      <p className="muted small">{relationText(found)}</p>
      {found.same ? <Notice title={t("noDifference")} hint={t("noDifferenceHint")} /> : null}
      <Values title={t("state")} changes={found.state} />
      <Values title={t("input")} changes={found.input} />
      <Values title={t("artifacts")} changes={found.artifacts} />
      <ComparedVisits visits={found.visits} same={found.sameVisits} />
      <ComparedUsage spent={found.spent} />
    </>
  );
}

function relationText(found: Comparison): string {
  if (found.relation === "same") return t("oneRun");
  if (found.parted === null) return t("twoRuns");
  return t("parted", { run: found.parted.run.slice(0, 8), number: found.parted.record });
}

function Side({ side, title }: { side: ComparedSide; title: string }) {
  return (
    <div className="panel compare-side">
      <p className="run-line">
        <strong>{title}</strong>
        <Link to="/runs/$run" params={{ run: side.run }} search={{ at: side.record }} className="code">
          {`${side.run.slice(0, 8)} @ ${side.record}`}
        </Link>
        {RUN_STATUSES.some((each) => each === side.status) ? <StatusBadge shown={runWord(side.status)} /> : null}
      </p>
      <p className="muted small">
        {side.node ? t("atStep", { node: side.node }) : side.flow}{", "}<Moment at={side.at} seconds /> {"·"} {t("version", { version: shortVersion(side.version) })}
      </p>
    </div>
  );
}

function Values({ title, changes }: { title: string; changes: ValueChanges }) {
  if (changes.shown.length === 0) return null;
  return (
    <section className="panel compare-part">
      <h2>{title} <span className="muted small">{t("differences", { count: changes.shown.length + changes.leftOut })}</span></h2>
      <ul className="changes">
        {changes.shown.map((each) => <ChangeLine key={each.path} change={each} />)}
      </ul>
      {changes.leftOut > 0 ? <p className="muted small">{t("moreDifferences", { count: changes.leftOut })}</p> : null}
    </section>
  );
}
