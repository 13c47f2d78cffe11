/** Another person has saved meanwhile: what they saved, and what happens to one's own changes. */
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useAction } from "@/components/useAction";
import { useNow } from "@/components/useNow";
import { linesOf } from "@/models/textDiff";
import { roughly } from "@/models/time";
import { rewriteText } from "@/models/documentText";
import { failureOf } from "@/services/client";
import { NEW, saveDocument } from "@/services/documents";
import { t } from "./text";
import type { Saved } from "./useSaved";

export function SaveConflict({ saved }: { saved: Saved }) {
  const { theirs, name } = saved;
  const [isCompared, setCompared] = useState(false);
  const [copy, setCopy] = useState<string | null>(null);
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
        <strong>{t("conflict", { person: theirs.savedBy, ago: roughly(now - Date.parse(theirs.savedAt)) })}</strong> <span className="muted">{t("conflictHint")}</span>
      </p>
      <div className="conflict-tools">
        <button type="button" className="button" aria-expanded={isCompared} onClick={() => setCompared(!isCompared)}>{t("compare")}</button>
        <button type="button" className="button danger" disabled={copying.isOff} onClick={saved.overwrite}>{t("overwrite")}</button>
        <button type="button" className="button" aria-expanded={copy !== null} onClick={() => setCopy(copy === null ? `${name}-copy` : null)}>{t("saveCopy")}</button>
        {copy === null ? null : <Copy first={copy} isOff={copying.isOff} onCreate={(to) => copying.mutate(to)} />}
        {copying.isError ? <span className="field-error small">{failureOf(copying.error).title}</span> : null}
      </div>
      {isCompared ? (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
        <pre className="text-diff code" tabIndex={0} aria-label={t("theirs", { person: theirs.savedBy })}>
          {linesOf(theirs.source, saved.edited.text).map((each, at) => <span key={at} className={`line-${each.kind}`}>{`${each.kind === "added" ? "+" : each.kind === "removed" ? "-" : " "} ${each.text}\n`}</span>)}
        </pre>
      ) : null}
    </section>
  );
}

/** The name is typed next: it has the focus, and Enter creates the copy. */
function Copy({ first, isOff, onCreate }: { first: string; isOff: boolean; onCreate: (name: string) => void }) {
  const [name, setName] = useState(first);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  const create = (event: FormEvent) => {
    event.preventDefault();
    if (!isOff && name.trim() !== "") onCreate(name.trim());
  };
  return (
    <form className="conflict-tools" onSubmit={create}>
      <input ref={field} aria-label={t("copyName")} className="code" value={name} onChange={(event) => setName(event.target.value)} />
      <button type="submit" className="button primary" disabled={isOff || name.trim() === ""}>{t("create")}</button>
    </form>
  );
}
