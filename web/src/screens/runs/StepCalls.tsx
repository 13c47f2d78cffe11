/** Sub-steps: tool calls, model calls, reads of memory. */
import { Moment } from "@/components/Moment";
import { Value } from "@/components/Value";
import type { Call } from "@/services/steps";
import { effectWord } from "@/words";
import { StepFailure } from "./StepFailure";
import { StepPart } from "./StepPart";
import { t } from "./text";

export function StepCalls({ calls }: { calls: Call[] }) {
  return (
    <StepPart title={t("calls", { count: calls.length })} open>
      <ol className="step-list">
        {calls.map((each) => (
          <li key={`${each.seq} ${each.name} ${each.at}`}>
            <p>
              <strong>{each.name}</strong> <span className="muted small">{effectWord(each.effect)} {"·"} <Moment at={each.at} seconds />{each.tokens > 0 ? ` · ${t("tokenCount", { count: each.tokens })}` : ""}{each.cost > 0 ? ` · ${each.cost}` : ""}</span>
            </p>
            {each.failed ? <StepFailure failed={each.failed} traceback={each.traceback} /> : <Value value={each.value} rawNames />}
          </li>
        ))}
      </ol>
    </StepPart>
  );
}
