import { useRef } from "react";
import { Link, useNavigate } from "@tanstack/react-router";
import { Icon } from "@/components/Icon";
import { Moment } from "@/components/Moment";
import { useAction } from "@/components/useAction";
import { useKeepFocus } from "@/components/useKeepFocus";
import { useLiveState } from "@/live/useLive";
import { moveNodes } from "@/models/documentData";
import { failureOf } from "@/services/client";
import { type Problem, arrangeText, discardDocument, getDocument } from "@/services/documents";
import { t } from "./text";
import type { Saved } from "./useSaved";

type ToolbarProps = { saved: Saved; problems: Problem[]; isChecking: boolean; mayWrite: boolean; isText: boolean; onDeploy: () => void; onImport: () => void; onArranged: () => void; onProblems: () => void };

export function Toolbar({ saved, problems, isChecking, mayWrite, isText, onDeploy, onImport, onArranged, onProblems }: ToolbarProps) {
  const { edited, name, format } = saved;
  const navigate = useNavigate();
  const isOffline = useLiveState() === "offline";
  const arranging = useAction({
    mutationFn: () => arrangeText(edited.text, format),
    onSuccess: (boxes) => {
      edited.change((old) => moveNodes(old, new Map(Object.entries(boxes))));
      onArranged();
    },
  });
  const discarding = useAction({
    mutationFn: async () => {
      await discardDocument(name, saved.server.etag);
      return getDocument(name);
    },
    onSuccess: (found) => found && saved.revert(found),
  });
  const show = (view: "text" | undefined) => void navigate({ to: ".", search: (old: object) => ({ ...old, view }), replace: true });
  const bar = useRef<HTMLElement>(null);
  const keep = useKeepFocus(() => bar.current?.querySelector<HTMLElement>(".editor-tools button:enabled"));
  const failed = saved.error ?? arranging.error ?? discarding.error;
  return (
    <header ref={bar} className="editor-bar" data-part="toolbar" {...keep}>
      <div className="editor-name">
        <Link to="/flows" className="small">{t("flows")}</Link>
        <h1>{name}</h1>
        <output className="muted small">
          <State saved={saved} />
          {failed ? <span className="late"> {failureOf(failed).title}</span> : null}
        </output>
      </div>
      <div className="editor-tools">
        {mayWrite ? (
          <>
            <button type="button" className="button quiet" data-repeat="" disabled={!edited.canUndo} onClick={edited.undo} title={t("undoKey")}>{t("undo")}</button>
            <button type="button" className="button quiet" data-repeat="" disabled={!edited.canRedo} onClick={edited.redo} title={t("redoKey")}>{t("redo")}</button>
            <button type="button" className="button quiet" onClick={onImport}>{t("import")}</button>
            {isText ? null : <button type="button" className="button quiet" disabled={edited.problem !== null || arranging.isPending} onClick={() => arranging.mutate()}>{t("arrange")}</button>}
          </>
        ) : null}
        <fieldset className="switch">
          <legend className="away">{t("view")}</legend>
          <button type="button" aria-pressed={!isText} onClick={() => show(undefined)}>{t("canvas")}</button>
          <button type="button" aria-pressed={isText} onClick={() => show("text")}>{t(format)}</button>
        </fieldset>
        {mayWrite ? (
          <>
            <Count problems={problems} isChecking={isChecking} onClick={onProblems} />
            {saved.server.savedBy && saved.server.version && !saved.isChanged ? <button type="button" className="button quiet" disabled={discarding.isPending || isOffline} onClick={() => discarding.mutate()}>{t("discard")}</button> : null}
            <button type="button" className="button" disabled={!saved.isChanged || saved.isSaving || isOffline} onClick={saved.save} title={t("saveKey")}>{t("save")}</button>
            <button type="button" className="button" disabled={isOffline} onClick={onProblems}>{t("validate")}</button>
            <button type="button" className="button primary" disabled={isOffline} onClick={onDeploy}>{t("deploy")}</button>
          </>
        ) : null}
      </div>
    </header>
  );
}

function State({ saved: { isChanged, isRestored, server, revert } }: { saved: Saved }) {
  if (isRestored) {
    return (
      <>
        {t("restored")}{" "}
        <button type="button" className="link" onClick={() => revert(server)}>{t("dropChanges")}</button>
      </>
    );
  }
  if (isChanged) return <strong className="unsaved">{t("unsaved")}</strong>;
  if (!server.savedBy) return server.version ? t("deployedText") : t("never");
  return (
    <>
      {t("draftBy", { person: server.savedBy })}, <Moment at={server.savedAt} />
    </>
  );
}

function Count({ problems, isChecking, onClick }: { problems: Problem[]; isChecking: boolean; onClick: () => void }) {
  const hasErrors = problems.some((each) => each.severity === "error");
  return (
    <button type="button" className={hasErrors ? "button quiet late" : problems.length > 0 ? "button quiet warned" : "button quiet"} onClick={onClick} aria-busy={isChecking}>
      <Icon name={hasErrors ? "cross" : problems.length > 0 ? "warning" : "check"} />
      {t("problemCount", { count: problems.length })}
    </button>
  );
}
