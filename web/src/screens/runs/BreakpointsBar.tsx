/** Above every page: runs that stand at a breakpoint, with Continue for each and for all that are shown, and what became of each. */
import { useQueryClient } from "@tanstack/react-query";
import { Link, useRouterState } from "@tanstack/react-router";
import { useRef } from "react";
import { useRight } from "@/app/useSession";
import { Icon } from "@/components/Icon";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { useKeepFocus } from "@/components/useKeepFocus";
import { type Continued, type Paused, continuePaused } from "@/services/breakpoints";
import { word } from "@/words";
import { t } from "./text";
import { usePaused } from "./usePaused";
import "./breakpoints.css";

export default function BreakpointsBar() {
  const mayWrite = useRight("runs:write");
  const client = useQueryClient();
  const acting = useAction({
    mutationFn: (rows: Paused[]) => continuePaused(rows.map((each) => each.hold)),
    onSettled: () => Promise.all([client.invalidateQueries({ queryKey: ["runs"] }), client.invalidateQueries({ queryKey: ["run"] })]),
  });
  const { count, shown } = usePaused();
  // On a phone the names are on the pages of runs only: elsewhere they would leave no room.
  const isRuns = useRouterState({ select: (state) => state.location.pathname.startsWith("/runs") });
  const bar = useRef<HTMLElement>(null);
  // The page, once the bar itself is gone.
  const inBar = (found: string) => bar.current?.querySelector<HTMLElement>(found);
  const keep = useKeepFocus(() => inBar("li button:enabled") ?? inBar(".breakpoints-report > button") ?? inBar("a") ?? document.getElementById("main"));
  if (count === 0 && acting.isIdle) return null;
  const more = count - shown.length;
  return (
    <section ref={bar} className={`breakpoints ${isRuns ? "" : "breakpoints-elsewhere"}`} aria-label={t("breakpoints")} {...keep}>
      {count > 0 ? (
        <Link className="breakpoints-count" to="/runs" search={{ q: "at:breakpoint" }}>
          <Icon name="pause" />
          {t("paused", { count })}
        </Link>
      ) : null}
      <ul className="breakpoints-shown" hidden={shown.length === 0}>
        {shown.map((each) => (
          <li key={each.hold}>
            <Link to="/runs/$run" params={{ run: each.run }} search={{ tab: "graph" }}>{shownName(each, shown)}</Link>
            {mayWrite ? (
              <button type="button" className="button" disabled={acting.isOff} aria-label={t("continueOne", { name: shownName(each, shown) })} onClick={() => acting.mutate([each])}>
                {word("continue")}
              </button>
            ) : null}
          </li>
        ))}
        {more > 0 ? <li><Link to="/runs" search={{ q: "at:breakpoint" }}>{t("morePaused", { count: more })}</Link></li> : null}
      </ul>
      {mayWrite && shown.length > 1 ? (
        <button type="button" className="button primary" disabled={acting.isOff} onClick={() => acting.mutate(shown)}>
          {more > 0 ? t("continueShown", { count: shown.length }) : word("continueAll")}
        </button>
      ) : null}
      {acting.data ? <Report rows={acting.variables} results={acting.data} onClose={() => acting.reset()} /> : null}
      {acting.isError ? <Problem error={acting.error} onRetry={() => acting.reset()} /> : null}
    </section>
  );
}

const nameOf = (row: Paused) => `${row.flow} › ${row.node}`;

/** With the beginning of the run's id where another run stands at the same node. */
function shownName(row: Paused, all: readonly Paused[]): string {
  const isOnly = all.filter((each) => nameOf(each) === nameOf(row)).length === 1;
  return isOnly ? nameOf(row) : `${nameOf(row)} ${row.run.slice(0, 8)}`;
}

function Report({ rows, results, onClose }: { rows: Paused[]; results: Continued[]; onClose: () => void }) {
  const done = results.filter((each) => each.done).length;
  return (
    <div className="breakpoints-report small">
      <output>{t("continued", { count: done, left: results.length - done })}</output>
      <ul aria-label={t("continuedEach")}>
        {results.map((each) => {
          const row = rows.find((one) => one.hold === each.hold);
          return (
            <li key={each.hold}>
              {row ? <Link to="/runs/$run" params={{ run: row.run }}>{`${nameOf(row)} ${row.run.slice(0, 8)}`}</Link> : <span className="code">{each.hold.slice(0, 8)}</span>}
              {each.done ? <span>{t("continuedOne")}</span> : <span className="late">{each.why}</span>}
            </li>
          );
        })}
      </ul>
      <button type="button" className="button quiet" onClick={onClose}>{t("close")}</button>
    </div>
  );
}
