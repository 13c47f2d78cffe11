/** An action on the rows that are chosen: what would happen to each is asked first, and shown in groups. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useContext, useId, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useAction } from "@/components/useAction";
import { useOffline } from "@/live/useLive";
import { type Outcome, outcomeGroups } from "@/models/selection";
import { Announce } from "./Announce";
import { t } from "./text";

export type ManyAction = {
  label: string;
  isDanger?: boolean;
  /** Asks for a reason, and passes it on. */
  asksReason?: boolean;
  /** Changes nothing. */
  preview: (ids: string[]) => Promise<Outcome[]>;
  act: (ids: string[], reason: string) => Promise<Outcome[]>;
};
/** `titleOf`: of the dialog, for an action on so many. */
type BulkActProps = { titleOf: (label: string, count: number) => string; ids: string[]; most: number; actions: readonly ManyAction[]; onLeave: (left: string[]) => void };

/** `onLeave`: with the rows that stay chosen. */
export function BulkAct({ titleOf, ids, most, actions, onLeave }: BulkActProps) {
  const [action, setAction] = useState<ManyAction | null>(null);
  const isOffline = useOffline();
  useKeys([{ keys: "Escape", group: t("title"), label: t("clearSelection"), run: () => onLeave([]) }]);
  if (ids.length === 0) return null;
  return (
    <section className="bulk-bar panel" aria-label={t("selection")}>
      <strong>{t("selected", { count: ids.length })}</strong>
      {actions.map((each) => (
        <button key={each.label} type="button" className={`button ${each.isDanger ? "danger" : ""}`} disabled={ids.length > most || isOffline} onClick={() => setAction(each)}>
          {each.label}
        </button>
      ))}
      <button type="button" className="button quiet" onClick={() => onLeave([])}>
        {t("clearSelection")}
      </button>
      {ids.length > most ? <p className="late small">{t("tooMany", { most })}</p> : null}
      {action ? <Confirm action={action} title={titleOf(action.label, ids.length)} ids={ids} onClose={() => setAction(null)} onDone={(left) => { setAction(null); onLeave(left); }} /> : null}
    </section>
  );
}

type ConfirmProps = { action: ManyAction; title: string; ids: string[]; onClose: () => void; onDone: (left: string[]) => void };

function Confirm({ action, title, ids, onClose, onDone }: ConfirmProps) {
  const { label, isDanger = false, asksReason = false } = action;
  const client = useQueryClient();
  const say = useContext(Announce);
  const [reason, setReason] = useState("");
  const id = useId();
  // Asked once, as the dialog opens: what is confirmed is what was shown.
  const asking = useQuery({ queryKey: ["preview", label, ids], queryFn: () => action.preview(ids), staleTime: Infinity, gcTime: 0, retry: false });
  const able = asking.data?.filter((each) => each.done).map((each) => each.id) ?? [];
  const acting = useAction({
    mutationFn: () => action.act(able, reason.trim()),
    onSuccess: async (items) => {
      const left = items.filter((each) => !each.done);
      say(t("doneMany", { label, count: items.length - left.length, left: left.length, why: left[0]?.texts.join(" ") ?? "" }));
      onDone(left.map((each) => each.id));
      await client.invalidateQueries({ queryKey: ["operations"] });
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    acting.mutate();
  };
  return (
    <Dialog title={title} onClose={onClose} size="lg">
      <form className="confirm" onSubmit={submit}>
        {asking.isPending ? <Skeleton rows={2} /> : null}
        {asking.isError ? <Problem error={asking.error} onRetry={() => void asking.refetch()} /> : null}
        {asking.data ? <Groups items={asking.data} /> : null}
        {asksReason ? (
          <div className="field">
            <label htmlFor={id}>{t("reason")}</label>
            <input id={id} value={reason} required={isDanger} maxLength={500} onChange={(event) => setReason(event.target.value)} />
          </div>
        ) : null}
        {acting.isError ? <Problem error={acting.error} /> : null}
        <div className="confirm-buttons">
          <button type="button" className="button" onClick={onClose}>{t("back")}</button>
          <button type="submit" className={`button ${isDanger ? "danger" : "primary"}`} disabled={able.length === 0 || acting.isOff}>
            {t("confirmMany", { label, count: able.length })}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Groups({ items }: { items: Outcome[] }) {
  return (
    <ul className="outcomes">
      {outcomeGroups(items).map((group) => (
        <li key={group.ids[0]} className={group.done ? undefined : "left-out"}>
          <strong>{t(group.done ? "countOf" : "leftOut", { count: group.ids.length })}</strong>
          <div>
            {(group.texts.length > 0 ? group.texts : [t("notExplained")]).map((text) => (
              <p key={text}>{text}</p>
            ))}
          </div>
        </li>
      ))}
    </ul>
  );
}
