/** Runs that stand at a breakpoint, with Continue for each and for all that are shown. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Icon } from "@/components/Icon";
import { Problem } from "@/components/Problem";
import { continuePaused, listPaused } from "@/services/runs";
import { word } from "@/words";
import { t } from "./text";

export function BreakpointsBar() {
  const mayWrite = useRight("runs:write");
  const client = useQueryClient();
  const paused = useQuery({ queryKey: ["runs", "paused"], queryFn: listPaused });
  const acting = useMutation({
    mutationFn: (holds: string[]) => continuePaused(holds),
    onSettled: () => Promise.all([client.invalidateQueries({ queryKey: ["runs"] }), client.invalidateQueries({ queryKey: ["run"] })]),
  });
  const rows = paused.data ?? [];
  const failed = acting.data?.filter((each) => !each.done) ?? [];
  if (rows.length === 0 && !acting.isError && failed.length === 0) return null;
  return (
    <section className="breakpoints panel" aria-label={t("breakpoints")}>
      <strong className="breakpoints-count">
        <Icon name="pause" />
        {t("paused", { count: rows.length })}
      </strong>
      <ul>
        {rows.map((each) => (
          <li key={each.hold}>
            <Link to="/runs/$run" params={{ run: each.run }} search={{ tab: "graph" }}>{`${each.flow} › ${each.node}`}</Link>
            {mayWrite ? (
              <button type="button" className="button" disabled={acting.isPending} aria-label={t("continueOne", { flow: each.flow, node: each.node })} onClick={() => acting.mutate([each.hold])}>
                {word("continue")}
              </button>
            ) : null}
          </li>
        ))}
      </ul>
      {mayWrite && rows.length > 1 ? (
        <button type="button" className="button primary" disabled={acting.isPending} onClick={() => acting.mutate(rows.map((each) => each.hold))}>
          {word("continueAll")}
        </button>
      ) : null}
      <output className="small">
        {acting.data ? t("continued", { count: acting.data.length - failed.length }) : ""}
        {failed.map((each) => <span key={each.hold} className="late"> {each.why}</span>)}
      </output>
      {acting.isError ? <Problem error={acting.error} /> : null}
    </section>
  );
}
