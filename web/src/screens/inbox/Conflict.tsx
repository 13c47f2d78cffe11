/** Why a decision was not taken: who was first, what changed, or which fields are wrong. Never a bare error. */
import { useNow } from "@/components/useNow";
import { reasonText } from "@/models/sentence";
import type { Failure } from "@/services/client";
import type { Hold } from "@/services/holds";
import { t } from "./text";

export function Conflict({ hold, failure }: { hold: Hold; failure: Failure }) {
  const now = new Date(useNow());
  return (
    <div className="conflict" role="alert">
      <p>
        <strong>{reasonText(titleOf(failure), hold, t("thisQuestion"), now)}</strong>
      </p>
      {failure.hint && !isStale(failure) ? <p className="small">{failure.hint}</p> : null}
      {failure.kind === "conflict" || failure.kind === "changed" ? <p className="small">{t("draftKept")}</p> : null}
      {failure.requestId && failure.kind === "other" ? <p className="small muted">{t("requestId", { id: failure.requestId })}</p> : null}
    </div>
  );
}

function isStale(failure: Failure): boolean {
  return failure.kind === "changed" || failure.code === "content_changed";
}

function titleOf(failure: Failure): string {
  if (isStale(failure)) return t("staleDecision");
  if (failure.kind === "invalid") return t("invalid", { count: failure.errors.length });
  if (failure.kind === "offline") return t("notSent");
  return failure.title;
}
