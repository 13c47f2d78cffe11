/** One hold: what is asked, of whom and why, its form and its decision; or what was decided. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { useSession } from "@/app/useSession";
import { Icon } from "@/components/Icon";
import { Markdown } from "@/components/Markdown";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { serverNow } from "@/components/useNow";
import { Facts, Value } from "@/components/Value";
import { useHoldChanges } from "@/live/useLive";
import { firstValues, formOf, isRecord } from "@/models/form";
import { roughly } from "@/models/time";
import { type Typed, typedFields } from "@/models/typed";
import { type Draft, type Hold, getDraft, getHold } from "@/services/holds";
import { holdWord, priorityWord } from "@/words";
import { Activity } from "./Activity";
import { Answer } from "./Answer";
import { Changed } from "./Changed";
import { Consequences } from "./Consequences";
import { HoldActions } from "./HoldActions";
import { keptDraft } from "./keptDraft";
import { Outcome } from "./Outcome";
import { t } from "./text";
import { TooLate } from "./TooLate";
import type { Placed } from "./UndoBar";
import { usePresence } from "./usePresence";

type DetailProps = {
  id: string;
  tab: "activity" | "flow" | "data";
  onBack: () => void;
  onChanged: (hold: Hold) => void;
  onPlaced: (placed: Placed) => void;
};

export function Detail({ id, tab, onBack, onChanged, onPlaced }: DetailProps) {
  const client = useQueryClient();
  const { person } = useSession();
  const hold = useQuery({ queryKey: ["hold", id], queryFn: () => getHold(id) });
  const draft = useQuery({ queryKey: ["draft", id], queryFn: () => getDraft(id), staleTime: Number.POSITIVE_INFINITY, gcTime: 0 });
  useHoldChanges((change) => {
    if (change.hold !== id || (hold.data && change.version <= hold.data.version)) return;
    void client.invalidateQueries({ queryKey: ["hold", id] });
    void client.invalidateQueries({ queryKey: ["history", id] });
  });
  if (hold.isError) return <Problem error={hold.error} onRetry={() => void hold.refetch()} />;
  if (hold.isPending || draft.isPending) return <Skeleton rows={4} />;
  const kept = keptDraft(id, person);
  return <Loaded hold={hold.data} draft={kept ?? draft.data ?? null} unsaved={kept !== null} tab={tab} onBack={onBack} onChanged={onChanged} onPlaced={onPlaced} />;
}

type LoadedProps = Omit<DetailProps, "id"> & { hold: Hold; draft: Draft | null; unsaved: boolean };

/** Keeps what was typed, also when the form goes because somebody else was first. */
function Loaded({ hold, draft, unsaved, tab, onBack, onChanged, onPlaced }: LoadedProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const { person } = useSession();
  const form = useMemo(() => formOf(hold.schema, hold.context), [hold.schema, hold.context]);
  const [typed, setTyped] = useState<Typed>({ edits: draft?.values ?? {}, comment: draft?.comment ?? "" });
  const [read, setRead] = useState(hold);
  // The version that this page decided; an undone decision has a later one.
  const [sent, setSent] = useState<number | null>(null);
  const values = useMemo(() => firstValues(form, typed.edits), [form, typed.edits]);
  const fields = typedFields(form, values);
  const open = isOpen(hold);
  if (open && sent !== null && hold.version > sent) setSent(null);
  const startComment = () => {
    void navigate({ to: ".", search: (old: object) => ({ ...old, tab: "activity" as const }), resetScroll: false }).then(() => document.getElementById("new-comment")?.focus());
  };
  const hasTyped = fields.length > 0 || typed.comment.trim() !== "";
  const isOther = decider(hold) !== person;
  const lost = !open && sent === null && (hasTyped ? isOpen(read) || isOther : isOpen(read) && isOther);
  return (
    <article className="hold">
      <Head hold={hold} onBack={onBack} onChanged={onChanged} onComment={startComment} />
      <div className="hold-body">
        {open ? <Changed before={read} after={hold} onSeen={() => setRead(hold)} /> : null}
        {lost ? <TooLate hold={hold} fields={fields} comment={typed.comment} /> : null}
        <Body hold={hold} />
        {open ? (
          <Answer
            key={hold.requestHash}
            hold={hold}
            form={form}
            values={values}
            comment={typed.comment}
            unsaved={unsaved}
            onTyped={(field, value) => setTyped((old) => ({ ...old, edits: { ...old.edits, [field]: value } }))}
            onComment={(comment) => setTyped((old) => ({ ...old, comment }))}
            onPlaced={(placed) => {
              setSent(placed.hold.version);
              client.setQueryData(["hold", placed.hold.id], placed.hold);
              onPlaced(placed);
            }}
            onStale={() => void client.invalidateQueries({ queryKey: ["hold", hold.id] })}
          />
        ) : (
          <Outcome hold={hold} />
        )}
        <Tabs hold={hold} tab={tab} flow={open ? <Consequences hold={hold} form={form} values={values} /> : null} />
      </div>
    </article>
  );
}

function isOpen(hold: Hold): boolean {
  return hold.status === "pending" && hold.placedUntil === null;
}

function decider(hold: Hold): string {
  return hold.outcome?.by || hold.placedBy;
}

type HeadProps = { hold: Hold; onBack: () => void; onChanged: (hold: Hold) => void; onComment: () => void };

function Head({ hold, onBack, onChanged, onComment }: HeadProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const { person } = useSession();
  const others = usePresence(hold.id).filter((each) => each !== person);
  const priority = priorityWord(hold.priority);
  // A screen reader begins with the question. Mounted anew for each hold.
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <header className="hold-head">
      <button type="button" className="button quiet back" onClick={onBack}>
        {t("back")}
      </button>
      <div className="hold-line">
        <StatusBadge shown={{ ...holdWord(hold.status), ...(hold.outcome?.label ? { word: hold.outcome.label } : {}) }} />
        {priority.rank >= 2 ? <span className={`rank-${priority.rank} small`}><strong>{priority.word}</strong></span> : null}
        {hold.status === "pending" && hold.expiresAt ? <Due at={hold.expiresAt} /> : null}
        <HoldActions hold={hold} onChanged={onChanged} onComment={onComment} />
      </div>
      <h2 ref={heading} tabIndex={-1} className="hold-title">
        {hold.title}
      </h2>
      <p className="muted small">
        {hold.assignee ? t("for", { who: hold.assignee }) : t("nobody")}
        {" · "}
        {t("why", { why: hold.why })}
        {hold.claimedBy ? ` · ${t("claimedBy", { person: hold.claimedBy })}` : ""}
        {others.length > 0 ? ` · ${t("viewing", { people: others.join(", "), count: others.length })}` : ""}
      </p>
    </header>
  );
}

function Due({ at }: { at: string }) {
  const left = new Date(at).getTime() - serverNow();
  return (
    <span className={left < 0 ? "late small" : "muted small"}>
      <Moment at={at} text={left < 0 ? t("overdue", { time: roughly(left) }) : t("due", { time: roughly(left) })} />
    </span>
  );
}

const TECHNICAL = new Set(["entity_id", "effect", "turn"]);

function Body({ hold }: { hold: Hold }) {
  const context = isRecord(hold.context) ? Object.entries(hold.context).filter(([name]) => !TECHNICAL.has(name)) : [];
  return (
    <>
      {hold.prompt !== hold.title ? <Markdown text={hold.prompt} /> : null}
      {context.length > 0 ? <Facts value={Object.fromEntries(context)} /> : null}
      {!isRecord(hold.context) && hold.context ? <Value value={hold.context} /> : null}
    </>
  );
}

function Tabs({ hold, tab, flow }: { hold: Hold; tab: string; flow: React.ReactNode }) {
  const tabs = [
    ["activity", t("activity")],
    ["flow", t("flow")],
    ["data", t("data")],
  ] as const;
  return (
    <section className="hold-tabs">
      <nav className="tabs" aria-label={t("about")}>
        {tabs.map(([name, label]) => (
          <Link
            key={name}
            to="."
            search={(old: object) => ({ ...old, tab: name })}
            aria-current={tab === name ? "page" : undefined}
            resetScroll={false}
          >
            {label}
          </Link>
        ))}
      </nav>
      {tab === "activity" ? <Activity hold={hold} /> : null}
      {tab === "flow" ? (
        <>
          {flow}
          <p>
            <Link to="/runs/$run" params={{ run: hold.run }}>
              {t("openRun", { flow: hold.flow, node: hold.node })} <Icon name="arrow" />
            </Link>
          </p>
        </>
      ) : null}
      {tab === "data" ? (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
        <pre className="json" tabIndex={0}>
          {JSON.stringify({ context: hold.context, schema: hold.schema }, null, 2).slice(0, 262_144)}
        </pre>
      ) : null}
    </section>
  );
}
