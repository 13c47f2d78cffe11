/** Runs of this flow that stand at a breakpoint, with Continue for each. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRight } from "@/app/useSession";
import { Icon } from "@/components/Icon";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { useChangedRuns } from "@/live/useLive";
import { useRest } from "@/live/useRest";
import { continuePaused, listPaused } from "@/services/breakpoints";
import { word } from "@/words";
import { t } from "./text";

export function PausedRuns({ flow }: { flow: string }) {
  const mayWrite = useRight("runs:write");
  const client = useQueryClient();
  const paused = useQuery({ queryKey: ["runs", "paused"], queryFn: listPaused });
  const refresh = () => client.invalidateQueries({ queryKey: ["runs", "paused"] });
  useChangedRuns(useRest(refresh));
  const acting = useAction({ mutationFn: (hold: string) => continuePaused([hold]), onSettled: refresh });
  const rows = paused.data?.shown.filter((each) => each.flow === flow) ?? [];
  const refused = acting.data?.find((each) => !each.done)?.why;
  if (isLost(paused)) return <Problem error={paused.error} onRetry={() => void paused.refetch()} />;
  if (rows.length === 0 && !acting.isError && !refused) return null;
  return (
    <section className="paused" aria-label={t("pausedRuns")}>
      <h3>{t("pausedRuns")}</h3>
      <ul className="run-list">
        {rows.map((each) => (
          <li key={each.hold} className="run-row">
            <Icon name="pause" />
            <span>{each.node}</span>
            <span className="code muted">{each.run.slice(0, 8)}</span>
            {mayWrite ? (
              <button type="button" className="button" disabled={acting.isOff} aria-label={t("continueAt", { node: each.node, run: each.run.slice(0, 8) })} onClick={() => acting.mutate(each.hold)}>
                {word("continue")}
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {refused ? <p className="late">{refused}</p> : null}
      {acting.isError ? <Problem error={acting.error} /> : null}
    </section>
  );
}
