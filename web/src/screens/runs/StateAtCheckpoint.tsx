/** A slider over the checkpoints, the state at each, and what changed there. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useKeys } from "@/app/useKeys";
import { Moment } from "@/components/Moment";
import { Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { Value } from "@/components/Value";
import { changesBetween } from "@/models/state";
import { valueText } from "@/models/values";
import { type Checkpoint, getStateAt, listCheckpoints } from "@/services/runs";
import { t } from "./text";

export function StateAtCheckpoint({ run, at }: { run: string; at: number | undefined }) {
  const checkpoints = useQuery({ queryKey: ["run", run, "checkpoints"], queryFn: () => listCheckpoints(run) });
  if (checkpoints.isPending) return <Skeleton />;
  if (checkpoints.isError) return <Problem error={checkpoints.error} onRetry={() => void checkpoints.refetch()} />;
  if (checkpoints.data.length === 0) return <Notice title={t("noCheckpoints")} />;
  return <Slider run={run} at={at} all={checkpoints.data} />;
}

function Slider({ run, at, all }: { run: string; at: number | undefined; all: Checkpoint[] }) {
  const navigate = useNavigate();
  const found = at === undefined ? all.length - 1 : all.findLastIndex((each) => each.seq <= at);
  const place = Math.max(0, found);
  const go = (next: number) => {
    const seq = all[Math.max(0, Math.min(all.length - 1, next))]!.seq;
    const isLast = next >= all.length - 1;
    void navigate({ to: "/runs/$run", params: { run }, search: { tab: "state", ...(isLast ? {} : { at: seq }) }, replace: true, resetScroll: false });
  };
  useKeys([
    { keys: "[", group: t("title"), label: t("keyBefore"), run: () => go(place - 1) },
    { keys: "]", group: t("title"), label: t("keyAfter"), run: () => go(place + 1) },
    { keys: "l", group: t("title"), label: t("keyLive"), run: () => go(all.length - 1) },
  ]);
  const current = all[place]!;
  return (
    <div className="time-travel">
      <div className="slider panel">
        <label htmlFor="record">{t("record", { number: current.seq, last: all.at(-1)!.seq })}</label>
        <button type="button" className="button" aria-label={t("keyBefore")} disabled={place === 0} onClick={() => go(place - 1)}>
          {"‹"}
        </button>
        <input id="record" type="range" min={0} max={all.length - 1} value={place} aria-valuetext={t("at", { node: current.node, number: current.seq })} onChange={(event) => go(Number(event.target.value))} />
        <button type="button" className="button" aria-label={t("keyAfter")} disabled={place === all.length - 1} onClick={() => go(place + 1)}>
          {"›"}
        </button>
        <button type="button" className="button quiet" disabled={at === undefined} onClick={() => go(all.length - 1)}>
          {t("latest")}
        </button>
      </div>
      <StateView run={run} current={current} before={all[place - 1]} />
    </div>
  );
}

function StateView({ run, current, before }: { run: string; current: Checkpoint; before: Checkpoint | undefined }) {
  const state = useQuery({ queryKey: ["state", run, current.id], queryFn: () => getStateAt(run, current.id), staleTime: Number.POSITIVE_INFINITY, placeholderData: (old) => old });
  const earlier = useQuery({
    queryKey: ["state", run, before?.id ?? ""],
    queryFn: () => getStateAt(run, before!.id),
    enabled: before !== undefined,
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (state.isPending) return <Skeleton rows={3} />;
  if (state.isError) return <Problem error={state.error} onRetry={() => void state.refetch()} />;
  const changes = before === undefined ? [] : changesBetween(earlier.data?.state, state.data.state);
  return (
    <>
      <p className="muted">
        {t("after", { node: current.node })} <Moment at={current.at} />
      </p>
      {changes.length > 0 && earlier.data ? (
        <section className="panel changes" aria-label={t("changes")}>
          <h2>{t("changes")}</h2>
          <dl className="facts">
            {changes.map((each) => (
              <div key={each.path}>
                <dt className="code">{each.path}</dt>
                <dd>
                  {each.kind === "added" ? null : <del>{valueText(each.before)}</del>} {each.kind === "removed" ? null : <ins>{valueText(each.after)}</ins>}
                </dd>
              </div>
            ))}
          </dl>
        </section>
      ) : null}
      <section className="panel state" aria-label={t("state")}>
        <h2>{t("state")}</h2>
        <Value value={state.data.state} rawNames />
      </section>
    </>
  );
}
