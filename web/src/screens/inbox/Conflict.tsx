/** Why a decision was not taken: who was first, what changed, or which fields are wrong. Never a bare error. */
import type { Failure } from "@/services/client";
import { personOf } from "@/services/holds";
import { t } from "./text";

export function Conflict({ failure }: { failure: Failure }) {
  return (
    <div className="conflict" role="alert">
      <p>
        <strong>{titleOf(failure)}</strong>
      </p>
      {failure.hint ? <p className="small">{failure.hint}</p> : null}
      {failure.kind === "conflict" || failure.kind === "changed" ? <p className="small">{t("draftKept")}</p> : null}
      {failure.requestId && failure.kind === "other" ? <p className="small muted">{t("requestId", { id: failure.requestId })}</p> : null}
    </div>
  );
}

function titleOf(failure: Failure): string {
  const by = failure.facts["resolved_by"] ?? failure.facts["by"];
  const decision = failure.facts["decision"];
  if (failure.kind === "conflict" && typeof by === "string") {
    return t("tooLate", { person: personOf(by), decision: typeof decision === "string" ? decision : "" });
  }
  if (failure.kind === "invalid") return t("invalid", { count: failure.errors.length });
  if (failure.kind === "offline") return t("notSent");
  return failure.title;
}
