/** The runs that this one came from, those that were forked from it, and the one that replaces it. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PASSING } from "@/app/query";
import { Problem } from "@/components/Problem";
import { useSeldom } from "@/live/useRest";
import { type Run, listForks } from "@/services/runs";
import { RunBadge } from "./RunBadge";
import { t } from "./text";
import { useSource } from "./useSource";

export function Lineage({ run }: { run: Run }) {
  const source = useSource(run);
  const moved = useSeldom(run.eventSeq);
  const forks = useQuery({ queryKey: ["forks", run.id, moved], queryFn: () => listForks(run.id), gcTime: PASSING, placeholderData: (old) => old });
  return (
    <>
      {source ? (
        <p className="small">
          <Link to="/runs/$run" params={{ run: source.run }} search={{ at: source.seq }}>
            {t("forkedFrom", { run: source.run.slice(0, 8), number: source.seq })}
          </Link>
        </p>
      ) : null}
      {forks.isError ? <Problem error={forks.error} onRetry={() => void forks.refetch()} /> : null}
      {forks.data && forks.data.length > 0 ? (
        <p className="small run-line">
          {t("forks")}
          {forks.data.map((each) => (
            <span key={each.id} className="fork">
              <Link to="/runs/$run" params={{ run: each.id }} className="code">{each.id.slice(0, 8)}</Link> <RunBadge run={each} />
            </span>
          ))}
        </p>
      ) : null}
      {run.supersededBy ? (
        <p className="small">
          <Link to="/runs/$run" params={{ run: run.supersededBy }}>{t("replacedBy", { run: run.supersededBy.slice(0, 8) })}</Link>
        </p>
      ) : null}
      {run.parentRun ? (
        <p className="small">
          <Link to="/runs/$run" params={{ run: run.parentRun }}>{t("childOf", { run: run.parentRun.slice(0, 8) })}</Link>
        </p>
      ) : null}
    </>
  );
}
