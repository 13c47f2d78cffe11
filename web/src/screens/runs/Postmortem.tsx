/** The report of the run's whole history, as the server writes it, and the same as a file. */
import { useQuery } from "@tanstack/react-query";
import { Suspense, lazy } from "react";
import { PASSING } from "@/app/query";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useAction } from "@/components/useAction";
import { getPostmortem } from "@/services/runHistory";
import type { Run } from "@/services/runs";
import { t } from "./text";

const Whole = lazy(async () => ({ default: (await import("@/components/Markdown")).WholeMarkdown }));
const TYPES = { md: "text/markdown;charset=utf-8", html: "text/html;charset=utf-8" } as const;

export function Postmortem({ run }: { run: Run }) {
  const report = useQuery({ queryKey: ["postmortem", run.id, run.head, run.status], queryFn: () => getPostmortem(run.id, "md"), gcTime: PASSING, placeholderData: (old) => old });
  const saving = useAction({ mutationFn: async (format: "md" | "html") => save(await getPostmortem(run.id, format), `postmortem-${run.id.slice(0, 8)}.${format}`, TYPES[format]) });
  return (
    <section className="panel postmortem" aria-label={t("postmortem")}>
      <p className="run-line">
        <span className="muted small">{t("postmortemHint")}</span>
        <span className="run-actions">
          <button type="button" className="button" disabled={saving.isOff} onClick={() => saving.mutate("md")}>{t("saveMarkdown")}</button>
          <button type="button" className="button" disabled={saving.isOff} onClick={() => saving.mutate("html")}>{t("saveHtml")}</button>
        </span>
      </p>
      {report.isPending ? <Skeleton /> : null}
      {report.isError ? <Problem error={report.error} onRetry={() => void report.refetch()} /> : null}
      {saving.isError ? <Problem error={saving.error} /> : null}
      {report.data ? <Suspense fallback={<Skeleton />}><Whole text={report.data} /></Suspense> : null}
    </section>
  );
}

function save(text: string, name: string, type: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  // After the browser has begun to read it.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
