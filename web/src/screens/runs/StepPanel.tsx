/** One step: what went in and came out, why it failed, its attempts, its sub-steps and its cost. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { Text, Value } from "@/components/Value";
import { duration } from "@/models/time";
import { type Failed, type Step, getStep } from "@/services/runs";
import { visitWord } from "@/words";
import { t } from "./text";

export function StepPanel({ run, seq }: { run: string; seq: number }) {
  const step = useQuery({ queryKey: ["step", run, seq], queryFn: () => getStep(run, seq), staleTime: Number.POSITIVE_INFINITY, placeholderData: (old) => old });
  return (
    <aside className="step panel" aria-label={t("step")}>
      {step.isPending ? <Skeleton rows={3} /> : null}
      {step.isError ? <Problem error={step.error} onRetry={() => void step.refetch()} /> : null}
      {step.data ? <StepParts step={step.data} /> : null}
    </aside>
  );
}

function StepParts({ step }: { step: Step }) {
  const passed = step.endedAt ? new Date(step.endedAt).getTime() - new Date(step.startedAt).getTime() : 0;
  return (
    <>
      <header className="step-head">
        <h2>{step.node}</h2>
        <StatusBadge shown={visitWord(step.state)} />
        <p className="muted small">
          <Moment at={step.startedAt} />
          {` · ${duration(passed)} · `}
          <Link to="." search={(old: object) => ({ ...old, at: step.seq, step: undefined })} resetScroll={false}>
            {t("goToRecord", { number: step.seq })}
          </Link>
        </p>
      </header>
      {step.failed ? <Failure failed={step.failed} /> : null}
      {step.output !== null && step.output !== undefined ? <Part title={t("output")} open><Value value={step.output} rawNames /></Part> : null}
      <Part title={t("input")} open={step.failed !== null}>
        {step.input === null || step.input === undefined ? <p className="muted">{t("nothing")}</p> : <Value value={step.input} rawNames />}
      </Part>
      {step.said ? <Part title={t("said")} open><Text text={step.said} /></Part> : null}
      {step.calls.length > 0 ? <Calls step={step} /> : null}
      {step.trials.length > 0 ? <Trials step={step} /> : null}
      <dl className="facts small step-facts">
        <div><dt>{t("effect")}</dt><dd>{step.effect}</dd></div>
        <div><dt>{t("work")}</dt><dd>{duration(step.workMs)}</dd></div>
        {step.tokens > 0 ? <div><dt>{t("tokens")}</dt><dd>{step.tokens}</dd></div> : null}
        {step.cost > 0 ? <div><dt>{t("cost")}</dt><dd>{step.cost}</dd></div> : null}
      </dl>
    </>
  );
}

function Part({ title, open = false, children }: { title: string; open?: boolean; children: ReactNode }) {
  return (
    <details className="step-part" open={open}>
      <summary>{title}</summary>
      <div>{children}</div>
    </details>
  );
}

const SAID = new Set(["type", "message"]);

function Failure({ failed }: { failed: Failed }) {
  const rest = Object.entries(failed).filter(([name]) => !SAID.has(name));
  return (
    <div className="run-error">
      <strong>{failed["type"]}</strong>
      <div><Text text={failed["message"] ?? ""} /></div>
      {rest.map(([name, value]) => (
        <div key={name} className="small"><span className="code">{name}</span> <Text text={value} /></div>
      ))}
    </div>
  );
}

function Calls({ step }: { step: Step }) {
  return (
    <Part title={t("calls", { count: step.calls.length })} open>
      <ol className="step-list">
        {step.calls.map((each) => (
          <li key={each.seq}>
            <p><strong>{each.name}</strong> <span className="muted small">{each.effect} {"·"} <Moment at={each.at} /></span></p>
            {each.failed ? <Failure failed={each.failed} /> : <Value value={each.value} rawNames />}
          </li>
        ))}
      </ol>
    </Part>
  );
}

function Trials({ step }: { step: Step }) {
  return (
    <Part title={t("attempts", { count: step.attempts })} open>
      <ol className="step-list">
        {step.trials.map((each) => (
          <li key={`${each.attempt} ${each.at}`}>
            <p>
              <strong>{t("attemptNumber", { number: each.attempt })}</strong> <span className="muted small">{each.reason} {"·"} <Moment at={each.at} /></span>
            </p>
            {each.failed ? <Failure failed={each.failed} /> : null}
            {each.wakesAt ? <p className="muted small">{t("nextAttempt")} <Moment at={each.wakesAt} /></p> : null}
          </li>
        ))}
      </ol>
    </Part>
  );
}
