/** Which record of this run is compared with which record of it or of another run. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Problem } from "@/components/Problem";
import { useNow } from "@/components/useNow";
import { type Sides, type Target, writeTarget } from "@/models/diff";
import { writeRunQuery } from "@/models/runQuery";
import { shortTime } from "@/models/time";
import { type Run, listRuns } from "@/services/runs";
import { statusWord } from "@/words";
import { t } from "./text";

type ChoiceProps = { run: Run; sides: Sides; last: number };

export function CompareChoice({ run, sides, last }: ChoiceProps) {
  const navigate = useNavigate();
  const now = useNow();
  const others = useQuery({ queryKey: ["compared runs", run.flow], queryFn: () => listRuns(writeRunQuery({ status: [], flow: run.flow }), null), staleTime: 30_000 });
  const { from, to, isReverse } = sides;
  const go = (at: number | undefined, target: Target) =>
    void navigate({ to: ".", search: (old: object) => ({ ...old, at, to: writeTarget(target, run.id) }), replace: true, resetScroll: false });
  const rows = others.data?.runs.filter((each) => each.id !== run.id) ?? [];
  const isListed = to.run === run.id || rows.some((each) => each.id === to.run);
  return (
    <div className="compare-choice panel">
      <label className="field-small">
        <span>{t(isReverse ? "compareOwnRecord" : "compareFromRecord")}</span>
        <RecordInput value={from} last={last} onChange={(record) => go(record, to)} />
      </label>
      <label className="field-small compare-run">
        <span>{t("compareWith")}</span>
        <select value={to.run} onChange={(event) => go(event.target.value === run.id ? from : undefined, { run: event.target.value, record: undefined })}>
          <option value={run.id}>{t("thisRun")}</option>
          {isListed ? null : <option value={to.run}>{to.run.slice(0, 8)}</option>}
          {rows.map((each) => (
            <option key={each.id} value={each.id}>{`${each.id.slice(0, 8)} · ${statusWord(each).word} · ${shortTime(new Date(each.createdAt), new Date(now))}`}</option>
          ))}
        </select>
      </label>
      <label className="field-small">
        <span>{t(isReverse ? "compareFromRecord" : "compareToRecord")}</span>
        <RecordInput value={to.record} last={to.run === run.id ? last : undefined} onChange={(record) => go(from, { ...to, record })} />
      </label>
      {others.isError ? <Problem error={others.error} onRetry={() => void others.refetch()} /> : null}
    </div>
  );
}

type RecordInputProps = { value: number | undefined; last: number | undefined; onChange: (record: number | undefined) => void };

function RecordInput({ value, last, onChange }: RecordInputProps) {
  const read = (text: string) => onChange(text === "" ? undefined : Math.max(0, Math.min(last ?? 1e9, Math.trunc(Number(text) || 0))));
  return <input type="number" min={0} max={last} value={value ?? ""} placeholder={t("latest")} onChange={(event) => read(event.target.value)} />;
}
