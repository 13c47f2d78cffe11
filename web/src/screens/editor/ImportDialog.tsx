/** A document from a file or from the clipboard. What is wrong with it is said before anything is replaced. */
import { useQuery } from "@tanstack/react-query";
import { type ChangeEvent, type ReactNode, useDeferredValue, useMemo, useState } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem as ErrorNotice } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { importedText } from "@/models/documentImport";
import { checkText } from "@/services/documents";
import { Problems } from "./Problems";
import { t } from "./text";
import type { Saved } from "./useSaved";

/** As the server: a longer text is refused there. */
const MOST_LETTERS = 4_000_000;

function Scrolled({ children }: { children: ReactNode }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    <section className="import-problems" tabIndex={0} aria-label={t("problems")}>{children}</section>
  );
}

export function ImportDialog({ saved, onClose, onReplaced }: { saved: Saved; onClose: () => void; onReplaced: () => void }) {
  const { edited, name, format } = saved;
  const [given, setGiven] = useState("");
  const [isTooLong, setTooLong] = useState(false);
  const text = useDeferredValue(given);
  const found = useMemo(() => (text.trim() === "" ? null : importedText(text, name, format)), [text, name, format]);
  const read = found?.problem === null ? found : null;
  const check = useQuery({ queryKey: ["documents", "check", format, read?.text ?? ""], queryFn: () => checkText(read?.text ?? "", format), enabled: read !== null, staleTime: 60_000, retry: false });
  const choose = async (event: ChangeEvent<HTMLInputElement>) => {
    const file = event.target.files?.[0];
    if (!file) return;
    setTooLong(file.size > MOST_LETTERS);
    setGiven(file.size > MOST_LETTERS ? "" : await file.text());
  };
  const replace = () => {
    if (read === null) return;
    edited.setText(read.text);
    onReplaced();
    onClose();
  };
  return (
    <Dialog title={t("importTitle")} onClose={onClose} size="xl">
      <div className="import">
        <label className="import-file">
          <span>{t("importFile")}</span>
          <input type="file" accept=".yaml,.yml,.json,application/json,application/yaml,text/yaml" onChange={(event) => void choose(event)} />
        </label>
        {isTooLong ? <p className="field-error small" role="alert">{t("importTooLong")}</p> : null}
        <label>
          <span>{t("importPaste")}</span>
          <textarea className="code" rows={10} spellCheck={false} value={given} onChange={(event) => setGiven(event.target.value)} />
        </label>
        {found?.problem ? <p className="field-error" role="alert">{t("importUnread", { line: found.problem.line, why: found.problem.message || t("importNoDocument") })}</p> : null}
        {read ? (
          <section aria-label={t("importFound")}>
            <p><output>{t("importParts", { nodes: read.nodes, edges: read.edges })}</output></p>
            {read.otherName ? <p className="muted small">{t("importName", { other: read.otherName, name })}</p> : null}
            {read.isRewritten ? <p className="muted small">{t("importRewritten", { format: t(format) })}</p> : null}
            {check.isPending ? <Skeleton rows={2} /> : null}
            {check.isError ? <ErrorNotice error={check.error} onRetry={() => void check.refetch()} /> : null}
            {check.data ? <Scrolled><Problems problems={check.data.problems} /></Scrolled> : null}
          </section>
        ) : null}
        <div className="dialog-buttons">
          <button type="button" className="button" onClick={onClose}>{t("cancel")}</button>
          <button type="button" className="button primary" disabled={read === null || check.isPending} onClick={replace}>{t("importReplace")}</button>
        </div>
        <p className="muted small">{t("importUndo")}</p>
      </div>
    </Dialog>
  );
}
