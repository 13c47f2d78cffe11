/** The rows of the list of runs. */
import { Link } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { useNow } from "@/components/useNow";
import { toggled } from "@/models/selection";
import { duration, roughly } from "@/models/time";
import type { Run } from "@/services/runs";
import { RunBadge } from "./RunBadge";
import { t } from "./text";

type TableProps = { rows: Run[]; chosen: ReadonlySet<string> | null; onChoose: (chosen: ReadonlySet<string>) => void };

/** Of an error: three lines of it are shown. */
const MOST_LETTERS = 500;

/** `chosen` null: nothing can be done with them. */
export function RunTable({ rows, chosen, onChoose }: TableProps) {
  const now = useNow(rows.some((each) => each.endedAt === null));
  const all = rows.every((each) => chosen?.has(each.id));
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <div className="table-scroll panel" tabIndex={0}>
      <table className="list-table run-table">
        <thead>
          <tr>
            {chosen ? (
              <th className="pick">
                <input type="checkbox" aria-label={t("selectAll")} checked={all} onChange={() => onChoose(new Set(all ? [] : rows.map((each) => each.id)))} />
              </th>
            ) : null}
            <th scope="col">{t("run")}</th>
            <th scope="col">{t("flow")}</th>
            <th scope="col">{t("status")}</th>
            <th scope="col">{t("started")}</th>
            <th scope="col">{t("took")}</th>
            <th scope="col">{t("by")}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((run) => (
            <tr key={run.id} aria-selected={chosen ? chosen.has(run.id) : undefined}>
              {chosen ? (
                <td className="pick">
                  <input type="checkbox" aria-label={t("selectRun", { run: run.id.slice(0, 8) })} checked={chosen.has(run.id)} onChange={() => onChoose(toggled(chosen, run.id))} />
                </td>
              ) : null}
              <th scope="row">
                <Link to="/runs/$run" params={{ run: run.id }} className="code">
                  {run.id.slice(0, 8)}
                </Link>
              </th>
              <td className="cell-flow">{run.flow}</td>
              <td className="cell-status">
                <RunBadge run={run} />
                {run.error ? <span className={`row-error small ${run.status === "cancelled" ? "muted" : ""}`}>{run.error.slice(0, MOST_LETTERS)}</span> : null}
              </td>
              <td data-label={t("started")}>
                <Moment at={run.createdAt} text={agoText(run, now)} />
              </td>
              <td data-label={t("took")}>{tookText(run, now)}</td>
              <td data-label={t("by")}>{run.startedBy}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function agoText(run: Run, now: number): string {
  return t("ago", { age: roughly(now - new Date(run.createdAt).getTime()) });
}

function tookText(run: Run, now: number): string {
  const length = duration(Math.max(0, (run.endedAt ? new Date(run.endedAt).getTime() : now) - new Date(run.createdAt).getTime()));
  return run.endedAt ? length : t("tookNow", { length });
}
