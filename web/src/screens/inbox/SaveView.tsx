/** A view of one's own: what is listed now, under a name. */
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Problem } from "@/components/Problem";
import { useAction } from "@/components/useAction";
import { type SavedView, type View, dropView, saveView } from "@/services/holds";
import { word } from "@/words";
import { t } from "./text";

export function SaveView({ view, q }: { view: View; q: string }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [isOpen, setOpen] = useState(false);
  const [title, setTitle] = useState("");
  const [shared, setShared] = useState(false);
  const saving = useAction({
    mutationFn: () => saveView(title.trim(), view, q, shared),
    onSuccess: async (id) => {
      setOpen(false);
      setTitle("");
      await client.invalidateQueries({ queryKey: ["views"] });
      await navigate({ to: "/inbox/$view", params: { view: id } });
    },
  });
  if (!isOpen) {
    return (
      <button type="button" className="button quiet save-view" onClick={() => setOpen(true)}>
        {t("saveView")}
      </button>
    );
  }
  return (
    <form
      className="save-view-form"
      aria-label={t("saveViewTitle")}
      onSubmit={(event) => {
        event.preventDefault();
        if (title.trim()) saving.mutate();
      }}
    >
      <label className="field-label" htmlFor="view-title">{t("viewName")}</label>
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- opened by the person a moment ago */}
      <input id="view-title" autoFocus value={title} onChange={(event) => setTitle(event.target.value)} />
      <label className="small">
        <input type="checkbox" checked={shared} onChange={(event) => setShared(event.target.checked)} /> {t("shareView")}
      </label>
      {saving.isError ? <Problem error={saving.error} /> : null}
      <div className="bulk-row">
        <button type="submit" className="button primary" disabled={!title.trim() || saving.isPending}>{word("save")}</button>
        <button type="button" className="button" onClick={() => setOpen(false)}>{t("cancel")}</button>
      </div>
    </form>
  );
}

export function DropView({ saved, isCurrent }: { saved: SavedView; isCurrent: boolean }) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const dropping = useAction({
    mutationFn: () => dropView(saved.id),
    onSuccess: async () => {
      if (isCurrent) await navigate({ to: "/inbox/$view", params: { view: saved.view }, search: saved.q ? { q: saved.q } : {} });
      await client.invalidateQueries({ queryKey: ["views"] });
    },
  });
  return (
    <button type="button" className="button quiet drop-view" aria-label={t("dropView", { title: saved.title })} disabled={dropping.isPending} onClick={() => dropping.mutate()}>
      <span aria-hidden="true">{"×"}</span>
    </button>
  );
}
