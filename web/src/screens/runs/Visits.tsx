/** Every visit of a node, in order, with its attempts and its error. */
import { useQuery } from "@tanstack/react-query";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { Text } from "@/components/Value";
import { duration } from "@/models/time";
import { listVisits } from "@/services/runs";
import { visitWord } from "@/words";
import { t } from "./text";

export function Visits({ run }: { run: string }) {
  const now = useNow();
  const visits = useQuery({ queryKey: ["run", run, "visits"], queryFn: () => listVisits(run) });
  if (visits.isPending) return <Skeleton />;
  if (visits.isError) return <Problem error={visits.error} onRetry={() => void visits.refetch()} />;
  if (visits.data.length === 0) return <Notice title={t("noVisits")} />;
  return (
    <ol className="visits panel">
      {visits.data.map((each) => (
        <li key={`${each.node} ${each.visit}`}>
          <StatusBadge shown={visitWord(each.state)} />
          <span className="visit-node">
            <strong>{each.node}</strong>
            {each.visit > 1 ? <span className="muted small"> {t("visit", { number: each.visit })}</span> : null}
            {each.attempts > 1 ? <span className="muted small"> {t("attempts", { count: each.attempts })}</span> : null}
          </span>
          <span className="muted small visit-time">
            <Moment at={each.startedAt} />
            {" · "}
            {duration((each.endedAt ? new Date(each.endedAt).getTime() : now) - new Date(each.startedAt).getTime())}
          </span>
          {each.error ? <div className="visit-error"><Text text={each.error} /></div> : null}
        </li>
      ))}
    </ol>
  );
}
