/** What a person does with a hold beside deciding it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Suspense, lazy, useState } from "react";
import { type BoundKey, useKeys } from "@/app/useKeys";
import { useRight, useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { useNow } from "@/components/useNow";
import { clock } from "@/models/time";
import { useOffline } from "@/live/useLive";
import { addressOf } from "@/services/client";
import { type Hold, claim, getMarks, release, unsnooze, unwatch, watch } from "@/services/holds";
import { word } from "@/words";
import { AskPanel, ExtendPanel, ReassignPanel, SnoozePanel } from "./ActionPanels";
import type { Snoozed } from "./SnoozeBar";
import { t } from "./text";

const MoreMenu = lazy(() => import("./MoreMenu"));

type Panel = "reassign" | "snooze" | "ask" | "extend";
/** A deadline so near is said, with a way to extend it. */
const SOON = 15 * 60_000;
export type ActionsProps = { hold: Hold; onChanged: (hold: Hold) => void; onComment: () => void; onSnoozed: (snoozed: Snoozed) => void };

export function HoldActions({ hold, onChanged, onComment, onSnoozed }: ActionsProps) {
  const { person } = useSession();
  const mayWrite = useRight("holds:write");
  const mayManage = useRight("holds:manage");
  const client = useQueryClient();
  const [copied, setCopied] = useState(false);
  const [panel, setPanel] = useState<Panel | null>(null);
  const marks = useQuery({ queryKey: ["marks", hold.id], queryFn: () => getMarks(hold), enabled: mayWrite });
  const isMine = hold.claimedBy === person;
  const isOffline = useOffline();
  const isOpen = hold.status === "pending" && hold.placedUntil === null && mayWrite;
  const left = (hold.expiresAt ? Date.parse(hold.expiresAt) : Infinity) - useNow();
  const isSoon = isOpen && !hold.isPaused && left > 0 && left < SOON;
  const changed = (next: Hold | null) => {
    setPanel(null);
    if (next) {
      client.setQueryData(["hold", hold.id], next);
      onChanged(next);
    }
    for (const kind of ["marks", "history", "comments"]) void client.invalidateQueries({ queryKey: [kind, hold.id] });
    void client.invalidateQueries({ queryKey: ["holds", "count"] });
  };
  const snoozed = (until: Date) => {
    changed(null);
    onSnoozed({ hold: hold.id, title: hold.title, until });
  };
  const acting = useMutation({ mutationFn: (act: () => Promise<Hold | void>) => act(), onSuccess: (next) => changed(next ?? null) });
  const toggleClaim = () => acting.mutate(() => (isMine ? release(hold.id) : claim(hold.id)));
  const toggleWatch = () => acting.mutate(() => (marks.data?.watched ? unwatch(hold.id) : watch(hold.id)));
  const toggleSnooze = () => (marks.data?.snoozedUntil ? acting.mutate(() => unsnooze(hold.id)) : setPanel("snooze"));
  const actions: (BoundKey & { shown: boolean })[] = [
    { keys: "m", group: t("detail"), label: isMine ? word("release") : word("claim"), run: toggleClaim, shown: isOpen },
    { keys: "r", group: t("detail"), label: word("reassign"), run: () => setPanel("reassign"), shown: isOpen },
    { keys: "s", group: t("detail"), label: marks.data?.snoozedUntil ? t("unsnooze") : word("snooze"), run: toggleSnooze, shown: isOpen },
    { keys: "a", group: t("detail"), label: word("ask"), run: () => setPanel("ask"), shown: isOpen },
    { keys: "t", group: t("detail"), label: t("extend"), run: () => setPanel("extend"), shown: isOpen && mayManage && hold.expiresAt !== null },
    { keys: "w", group: t("detail"), label: marks.data?.watched ? t("unwatch") : word("watch"), run: toggleWatch, shown: mayWrite },
    { keys: "c", group: t("detail"), label: word("comment"), run: onComment, shown: mayWrite },
  ].filter((each) => each.shown);
  useKeys(isOffline ? [] : actions.map(({ keys, group, label, run }) => ({ keys, group, label, run })));
  const copy = () => {
    void navigator.clipboard.writeText(window.location.origin + addressOf(`/holds/${hold.id}`)).then(() => setCopied(true));
  };
  return (
    <>
      <span className="hold-actions">
        {isOpen ? (
          <button type="button" className="button quiet" disabled={acting.isPending || isOffline} onClick={toggleClaim}>
            {isMine ? word("release") : word("claim")}
          </button>
        ) : null}
        <button type="button" className="button quiet" onClick={copy}>
          {copied ? t("copied") : word("copyLink")}
        </button>
        {actions.length > 0 && !isOffline ? (
          <Suspense fallback={<button type="button" className="button quiet" disabled>{t("more")}</button>}>
            <MoreMenu actions={actions.filter((each) => each.keys !== "m")} />
          </Suspense>
        ) : null}
      </span>
      {acting.isError ? <div className="action-panel"><Problem error={acting.error} /></div> : null}
      {panel === "reassign" ? <ReassignPanel hold={hold} onDone={changed} onClose={() => setPanel(null)} /> : null}
      {panel === "snooze" ? <SnoozePanel hold={hold} onDone={snoozed} onClose={() => setPanel(null)} /> : null}
      {marks.data?.snoozedUntil && isOpen && panel === null ? (
        <output className="snoozed small">
          {t("isSnoozed")} <Moment at={marks.data.snoozedUntil} />. <button type="button" className="link" disabled={isOffline || acting.isPending} onClick={toggleSnooze}>{t("unsnooze")}</button>
        </output>
      ) : null}
      {isSoon && panel === null ? (
        <output className="due-soon small">
          {t("dueSoon", { time: clock(new Date(hold.expiresAt!)) })} {mayManage ? null : <>{t("dueSoonAsk")} </>}
          <button type="button" className="link" disabled={isOffline} onClick={() => setPanel(mayManage ? "extend" : "ask")}>{mayManage ? t("extend") : word("ask")}</button>
        </output>
      ) : null}
      {panel === "extend" ? <ExtendPanel hold={hold} onDone={changed} onClose={() => setPanel(null)} /> : null}
      {panel === "ask" ? <AskPanel hold={hold} onDone={changed} onClose={() => setPanel(null)} /> : null}
    </>
  );
}
