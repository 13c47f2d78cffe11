/** Each attempt of a step: how long, by which worker, and why it failed. */
import { Moment } from "@/components/Moment";
import { duration } from "@/models/time";
import type { Attempt } from "@/services/steps";
import { StepFailure } from "./StepFailure";
import { StepPart } from "./StepPart";
import { t } from "./text";

const REASONS: Record<string, "reasonRetry" | "reasonRestarted" | "reasonDoubt" | "reasonResumed"> = { retry: "reasonRetry", restarted: "reasonRestarted", in_doubt: "reasonDoubt", resumed: "reasonResumed" };

export function StepAttempts({ attempts, hasEnded }: { attempts: Attempt[]; hasEnded: boolean }) {
  return (
    <StepPart title={t("attempts", { count: attempts.length })} open={attempts.length > 1}>
      <ol className="step-list">
        {attempts.map((each, place) => (
          <li key={`${each.number} ${each.startedAt}`}>
            <p>
              <strong>{t("attemptNumber", { number: each.number })}</strong>{" "}
              <span className="muted small">
                <Moment at={each.startedAt} seconds /> {"·"} {each.endedAt ? duration(Math.max(0, new Date(each.endedAt).getTime() - new Date(each.startedAt).getTime())) : t("underWay")} {"·"} {workerText(each)}
              </span>
            </p>
            {each.reason ? <p className="muted small">{REASONS[each.reason] ? t(REASONS[each.reason]!) : each.reason}</p> : null}
            {/* The error of the last one is shown above. */}
            {each.failed && (place < attempts.length - 1 || !hasEnded) ? <StepFailure failed={each.failed} traceback={each.traceback} /> : null}
          </li>
        ))}
      </ol>
    </StepPart>
  );
}

function workerText(attempt: Attempt): string {
  if (attempt.worker) return t("worker", { name: attempt.worker });
  return attempt.term <= 1 ? t("firstWorker") : t("workerOfTerm", { term: attempt.term });
}
