/** Every way in which a part of the page can have nothing to show. The rest of the page stays usable. */
import type { ReactNode } from "react";
import { shell } from "@/locales/en/shell";
import { textOf } from "@/locales/text";
import { type Failure, failureOf, noteUnexpected } from "@/services/client";
import { isReachable } from "@/services/live";
import { isMissingPart } from "./missingPart";
import { useTitle } from "./useTitle";

const t = textOf(shell);

type NoticeProps = { title: string; hint?: string; role?: "alert" | "status"; children?: ReactNode };

export function Notice({ title, hint, role, children }: NoticeProps) {
  return (
    <div className="notice" role={role}>
      <p className="notice-title">{title}</p>
      {hint ? <p className="muted">{hint}</p> : null}
      {children}
    </div>
  );
}

function wordsOf(failure: Failure): { title: string; hint: string } {
  if (failure.kind === "offline") return { title: t("offlineTitle"), hint: t("offlineHint") };
  if (failure.kind === "unexpected" || failure.code === "not_json") return { title: t("unexpectedTitle"), hint: t("unexpectedHint") };
  if (failure.kind === "missing") return { title: t("missingTitle"), hint: failure.title || t("missingHint") };
  return { title: failure.title || t("failedTitle"), hint: failure.hint };
}

export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const failure = failureOf(error);
  const { title, hint } = wordsOf(failure);
  return (
    <Notice title={title} hint={hint} role="alert">
      {failure.kind === "unexpected" ? <p className="muted small code">{failure.title}</p> : null}
      {failure.requestId ? <p className="muted small">{t("requestId", { id: failure.requestId })}</p> : null}
      {onRetry ? (
        <button type="button" className="button" onClick={onRetry}>
          {t("retry")}
        </button>
      ) : null}
    </Notice>
  );
}

export function Forbidden({ right }: { right: string }) {
  return <Notice title={t("forbiddenTitle", { right })} hint={t("forbiddenHint")} />;
}

export function NotFound() {
  useTitle([t("missingTitle")]);
  return (
    <main id="main" tabIndex={-1} className="page">
      <Notice title={t("missingTitle")} hint={t("missingHint")} />
    </main>
  );
}

/** Only a page that is loaded anew asks for a part again; without the server nothing would be left of this one. */
async function loadAgain(): Promise<void> {
  if (await isReachable()) window.location.reload();
}

function MissingPart() {
  return (
    <Notice title={t("missingPartTitle")} hint={t("missingPartHint")} role="alert">
      <button type="button" className="button" onClick={() => void loadAgain()}>
        {t("retry")}
      </button>
    </Notice>
  );
}

export function BrokenPart({ error, reset }: { error: unknown; reset?: () => void }) {
  if (isMissingPart(error)) return <MissingPart />;
  // What was read last is the likeliest cause.
  noteUnexpected(error);
  const failure = failureOf(error);
  if (failure.kind !== "other" && failure.kind !== "unexpected") return <Problem error={error} onRetry={reset} />;
  return (
    <Notice title={t("brokenTitle")} hint={t("brokenHint")} role="alert">
      <p className="muted small code">{failure.title}</p>
      {failure.requestId ? <p className="muted small">{t("requestId", { id: failure.requestId })}</p> : null}
      {reset ? (
        <button type="button" className="button" onClick={reset}>
          {t("retry")}
        </button>
      ) : null}
    </Notice>
  );
}
