/** One step: what went in and came out, why it failed, its attempts, its sub-steps, its output and its cost. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { PASSING } from "@/app/query";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { Text, Value } from "@/components/Value";
import { settling } from "@/live/settle";
import { logLines, streamedText } from "@/models/emitted";
import { duration } from "@/models/time";
import { barsOf, lengthOf } from "@/models/timeline";
import { plainText } from "@/models/values";
import { type Step, artifactAddress, getStep } from "@/services/steps";
import { effectWord, visitWord } from "@/words";
import { StepAttempts } from "./StepAttempts";
import { StepCalls } from "./StepCalls";
import { StepFailure } from "./StepFailure";
import { StepLogs } from "./StepLogs";
import { StepPart } from "./StepPart";
import { t } from "./text";

const stepSettled = settling();

/** `version`: changes when the step may have: an open one is read again. `isPast`: as it was at its record. */
export function StepPanel({ run, seq, isPast, version }: { run: string; seq: number; isPast: boolean; version: string }) {
  const step = useQuery({ queryKey: ["step", run, seq, version], queryFn: ({ signal }) => stepSettled(signal).then(() => getStep(run, seq, isPast)), staleTime: Number.POSITIVE_INFINITY, gcTime: PASSING, placeholderData: (old) => old });
  return (
    <aside className="step panel" aria-label={t("step")} data-part="step">
      {step.isPending ? <Skeleton rows={3} /> : null}
      {step.isError ? <Problem error={step.error} onRetry={() => void step.refetch()} /> : null}
      {step.data ? <StepParts run={run} step={step.data} record={seq} /> : null}
    </aside>
  );
}

/** `record`: the one that was asked for; of an open step there is no other. */
function StepParts({ run, step, record }: { run: string; step: Step; record: number }) {
  const text = streamedText(step.emitted, step.attempts);
  const logs = logLines(step.emitted);
  const nothing = step.input === null || step.input === undefined;
  return (
    <>
      <StepHead step={step} record={record} />
      {step.failed ? <StepFailure failed={step.failed} traceback={step.traceback} open /> : null}
      {step.output !== null && step.output !== undefined ? <StepPart title={t("output")} open><Value value={step.output} rawNames /></StepPart> : null}
      <StepPart title={t("input")} open={step.failed !== null}>{nothing ? <p className="muted">{t("nothing")}</p> : <Value value={step.input} rawNames />}</StepPart>
      {text ? <StepPart title={t("said")} open><Text text={text} /></StepPart> : null}
      {logs.length > 0 ? <StepLogs lines={logs} /> : null}
      {step.artifacts.length > 0 ? (
        <StepPart title={t("artifacts")} open>
          <ul className="step-list">
            {step.artifacts.map((name) => <li key={name}><a href={artifactAddress(run, name)} download>{plainText(name)}</a></li>)}
          </ul>
        </StepPart>
      ) : null}
      {step.calls.length > 0 ? <StepCalls calls={step.calls} /> : null}
      <StepAttempts attempts={step.spans} hasEnded={step.endedAt !== null} />
      <dl className="facts small step-facts">
        <div><dt>{t("effect")}</dt><dd>{effectWord(step.effect)}</dd></div>
        <div><dt>{t("work")}</dt><dd>{duration(step.workMs)}</dd></div>
        <div><dt>{t("tokens")}</dt><dd>{step.tokens}</dd></div>
        <div><dt>{t("cost")}</dt><dd>{step.cost}</dd></div>
      </dl>
    </>
  );
}

function StepHead({ step, record }: { step: Step; record: number }) {
  const passed = step.endedAt ? lengthOf(barsOf(step, 0)) : null;
  return (
    <header className="step-head">
      <h2>{step.name}</h2>
      <StatusBadge shown={visitWord(step.state)} />
      <p className="muted small">
        <Moment at={step.startedAt} seconds />
        {passed === null ? " · " : ` · ${duration(passed)} · `}
        <Link to="." search={(old: object) => ({ ...old, at: record, step: undefined })} resetScroll={false}>
          {t("goToRecord", { number: record })}
        </Link>
      </p>
    </header>
  );
}
