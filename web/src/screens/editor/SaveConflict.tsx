/** Another person has saved meanwhile: what they saved, and what happens to one's own changes. */
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAction } from "@/components/useAction";
import { useNow } from "@/components/useNow";
import { linesOf } from "@/models/textDiff";
import { duration } from "@/models/time";
import { rewriteText } from "@/models/documentText";
import { failureOf } from "@/services/client";
import { NEW, saveDocument } from "@/services/documents";
import { t } from "./text";
import type { Saved } from "./useSaved";

export function SaveConflict({ saved }: { saved: Saved }) {
  const { theirs, name } = saved;
  const [isCompared, setCompared] = useState(false);
  const [copy, setCopy] = useState("");
  const navigate = useNavigate();
  const now = useNow();
  const copying = useAction({
    mutationFn: (to: string) => saveDocument(to, rewriteText(saved.edited.text, saved.format, { ...saved.edited.data, name: to }), saved.format, NEW),
    onSuccess: (made) => {
      if (theirs) saved.revert(theirs);
      void navigate({ to: "/editor/$document", params: { document: made.name } });
    },
  });
  if (theirs === null) return null;
  return (
    <section className="editor-conflict" role="alert" aria-label={t("conflictHint")}>
      <p>
        <strong>{t("conflict", { person: theirs.savedBy, ago: duration(Math.max(0, now - Date.parse(theirs.savedAt))) })}</strong> <span className="muted">{t("conflictHint")}</span>
      </p>
      <p className="conflict-tools">
        <button type="button" className="button" aria-expanded={isCompared} onClick={() => setCompared(!isCompared)}>{t("compare")}</button>
        <button type="button" className="button danger" onClick={saved.overwrite}>{t("overwrite")}</button>
        <button type="button" className="button" onClick={() => setCopy(copy ? "" : `${name}-copy`)}>{t("saveCopy")}</button>
        {copy ? (
          <>
            <input aria-label={t("copyName")} className="code" value={copy} onChange={(event) => setCopy(event.target.value)} />
            <button type="button" className="button primary" disabled={copying.isPending} onClick={() => copying.mutate(copy)}>{t("create")}</button>
          </>
        ) : null}
        {copying.isError ? <span className="field-error small">{failureOf(copying.error).title}</span> : null}
      </p>
      {isCompared ? (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
        <pre className="text-diff code" tabIndex={0} aria-label={t("theirs", { person: theirs.savedBy })}>
          {linesOf(theirs.source, saved.edited.text).map((each, at) => <span key={at} className={`line-${each.kind}`}>{`${each.kind === "added" ? "+" : each.kind === "removed" ? "-" : " "} ${each.text}\n`}</span>)}
        </pre>
      ) : null}
    </section>
  );
}
