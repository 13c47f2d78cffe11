/** One hold: what is asked, of whom and why, its form and its decision; or what was decided. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useSession } from "@/app/useSession";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useTitle } from "@/components/useTitle";
import { useHoldChanges, useMissed } from "@/live/useLive";
import { firstValues, formOf } from "@/models/form";
import { newest } from "@/models/list";
import { type Typed, typedFields, withOwnChange } from "@/models/typed";
import { toolCallOf } from "@/models/toolCall";
import { type Draft, type Hold, getConversation, getDraft, getHold } from "@/services/holds";
import { Answer } from "./Answer";
import { CallDetails, TurnCalls } from "./Approval";
import { Changed } from "./Changed";
import { Body, titleOf } from "./Body";
import { Consequences } from "./Consequences";
import { ConversationPane } from "./ConversationPane";
import { Head } from "./Head";
import { keptDraft } from "./keptDraft";
import { Outcome } from "./Outcome";
import { Tabs } from "./Tabs";
import { t } from "./text";
import type { Snoozed } from "./SnoozeBar";
import { TooLate } from "./TooLate";
import type { Decided } from "./UndoBar";
import { focusTitle } from "./useInboxKeys";
import { useSeen } from "./useSeen";

type DetailProps = {
  id: string;
  tab: "activity" | "flow" | "data";
  onBack: () => void;
  onChanged: (hold: Hold) => void;
  onPlaced: (placed: Decided) => void;
  onSnoozed: (snoozed: Snoozed) => void;
};

const RESUMES = 2000;

export function Detail({ id, ...rest }: DetailProps) {
  const client = useQueryClient();
  const { person } = useSession();
  const hold = useQuery({
    queryKey: ["hold", id],
    queryFn: () => getHold(id),
    // That the run has resumed is no change of the hold: nobody tells of it.
    refetchInterval: ({ state }) => (state.data?.status === "resolved" && state.data.resumedAt === null ? RESUMES : false),
    // An answer that was on its way for long never replaces a newer one.
    structuralSharing: (old, next) => newest(old as Hold | undefined, next as Hold),
  });
  // What was typed on another device is there when the reader comes back to this one.
  const draft = useQuery({ queryKey: ["draft", id], queryFn: () => getDraft(id), staleTime: 0, refetchOnMount: "always", gcTime: 0 });
  useHoldChanges((change) => {
    if (change.hold !== id) return;
    // A comment is no change of the hold itself.
    for (const kind of ["history", "comments"]) void client.invalidateQueries({ queryKey: [kind, id] });
    if (!hold.data || change.version > hold.data.version) void client.invalidateQueries({ queryKey: ["hold", id] });
  });
  useMissed(() => {
    for (const kind of ["hold", "history", "comments"]) void client.invalidateQueries({ queryKey: [kind, id] });
  });
  if (isLost(hold)) return <Problem error={hold.error} onRetry={() => void hold.refetch()} />;
  if (hold.isPending || draft.isPending) return <Skeleton rows={4} />;
  const kept = keptDraft(id, person);
  return <Loaded hold={hold.data} draft={kept ?? draft.data ?? null} unsaved={kept !== null} {...rest} />;
}

type LoadedProps = Omit<DetailProps, "id"> & { hold: Hold; draft: Draft | null; unsaved: boolean };

/** Keeps what was typed, also when the form goes because somebody else was first. */
function Loaded({ hold, draft, unsaved, tab, onBack, onChanged, onPlaced, onSnoozed }: LoadedProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { person } = useSession();
  const form = useMemo(() => formOf(hold.schema, hold.context), [hold.schema, hold.context]);
  const [typed, setTyped] = useState<Typed>(() => typedIn(draft));
  const [isTouched, setTouched] = useState(unsaved);
  const [known, setKnown] = useState(draft);
  if (draft !== known) {
    setKnown(draft);
    if (!isTouched) setTyped(typedIn(draft));
  }
  const type = (change: (old: Typed) => Typed) => {
    setTouched(true);
    setTyped(change);
  };
  const [read, setRead] = useState(hold);
  // The version that this page decided, or tried to; an undone decision has a later one.
  const [sent, setSent] = useState<number | null>(null);
  const values = useMemo(() => firstValues(form, typed.edits), [form, typed.edits]);
  const fields = typedFields(form, values);
  const open = isOpen(hold);
  if (open && sent !== null && hold.version > sent) setSent(null);
  useSeen(hold.id, open);
  useKeys([{ keys: "e", group: t("detail"), label: t("keyExpand"), run: toggleFolds }]);
  const startComment = () => {
    void navigate({ to: ".", search: (old: object) => ({ ...old, tab: "activity" as const }), resetScroll: false }).then(() => document.getElementById("new-comment")?.focus());
  };
  // What this person changes is no news to them.
  const changed = (next: Hold) => {
    setRead((old) => withOwnChange(old, hold, next));
    onChanged(next);
  };
  const call = toolCallOf(hold);
  useTitle([titleOf(hold), t("title")]);
  const conversation = useQuery({ queryKey: ["conversation", hold.id, hold.version], queryFn: () => getConversation(hold.id), enabled: call !== null, retry: false });
  const said = call === null ? undefined : conversation.data;
  const beside = call !== null && conversation.isPending ? <Skeleton rows={3} /> : said && said.messages.length > 0 ? <ConversationPane conversation={said} /> : null;
  const hasTyped = fields.length > 0 || typed.comment.trim() !== "";
  const isOther = decider(hold) !== person;
  const lost = !open && sent === null && (hasTyped ? isOpen(read) || isOther : isOpen(read) && isOther);
  return (
    <article className="hold">
      <Head hold={call === null ? hold : { ...hold, title: titleOf(hold) }} onBack={onBack} onChanged={changed} onComment={startComment} onSnoozed={onSnoozed} />
      <div className="hold-body">
        {open ? <Changed before={read} after={hold} onSeen={() => setRead(hold)} /> : null}
        {lost ? <TooLate hold={hold} fields={fields} comment={typed.comment} /> : null}
        <Body hold={hold} />
        {said ? <TurnCalls hold={hold} conversation={said} /> : null}
        <div className={beside && !open ? "approval" : undefined}>
          {open ? (
            <Answer
              key={hold.requestHash}
              hold={hold}
              form={form}
              values={values}
              comment={typed.comment}
              unsaved={unsaved}
              beside={beside}
              onTyped={(field, value) => type((old) => ({ ...old, edits: { ...old.edits, [field]: value } }))}
              onComment={(comment) => type((old) => ({ ...old, comment }))}
              onSaved={() => setTouched(false)}
              onSending={() => setSent(hold.version)}
              onPlaced={(placed) => {
                setSent(placed.hold.version);
                client.setQueryData(["hold", placed.hold.id], placed.hold);
                onPlaced(placed);
              }}
              onStale={() => {
                setSent(null);
                void client.invalidateQueries({ queryKey: ["hold", hold.id] });
              }}
            />
          ) : (
            <Outcome
              hold={hold}
              form={form}
              onUndone={(restored) => {
                onChanged(restored);
                // Its button is gone.
                requestAnimationFrame(focusTitle);
              }}
            />
          )}
          {open ? null : beside}
        </div>
        {conversation.isError ? <Problem error={conversation.error} onRetry={() => void conversation.refetch()} /> : null}
        <CallDetails hold={hold} />
        <Tabs hold={hold} tab={tab} flow={open ? <Consequences hold={hold} form={form} values={values} /> : null} />
      </div>
    </article>
  );
}

function typedIn(draft: Draft | null): Typed {
  return { edits: draft?.values ?? {}, comment: draft?.comment ?? "" };
}

/** All of them: open, if one is closed. */
function toggleFolds(): void {
  const folds = [...document.querySelectorAll<HTMLDetailsElement>(".hold-body details")];
  const open = folds.some((each) => !each.open);
  for (const each of folds) each.open = open;
}

function isOpen(hold: Hold): boolean {
  return hold.status === "pending" && hold.placedUntil === null;
}

function decider(hold: Hold): string {
  return hold.outcome?.by || hold.placedBy;
}
