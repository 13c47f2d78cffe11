/** Small forms below the head of a hold: to whom, until when, which question. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useKeys } from "@/app/useKeys";
import { useSession } from "@/app/useSession";
import { useAction } from "@/components/useAction";
import { useFocusBack } from "@/components/useFocusBack";
import { serverNow, useNow } from "@/components/useNow";
import { useOffline } from "@/live/useLive";
import { reasonText } from "@/models/sentence";
import { failureOf } from "@/services/client";
import { type Hold, ask, extend, listPeople, reassign, snooze } from "@/services/holds";
import { word } from "@/words";
import { t } from "./text";
import { focusTitle } from "./useInboxKeys";

type PanelProps<Done = Hold | null> = { hold: Hold; onDone: (done: Done) => void; onClose: () => void };
type FrameProps<Done> = { title: string; submit: string; disabled: boolean; act: () => Promise<Done>; children: ReactNode } & PanelProps<Done>;

function Frame<Done>({ hold, title, submit, disabled, act, onDone, onClose, children }: FrameProps<Done>) {
  const frame = useRef<HTMLFormElement>(null);
  const sending = useAction({ mutationFn: act, onSuccess: onDone });
  const isOffline = useOffline();
  useFocusBack(focusTitle);
  useEffect(() => frame.current?.querySelector<HTMLElement>("input, textarea, select")?.focus(), []);
  useKeys([{ keys: "Escape", group: t("detail"), label: t("cancel"), whileTyping: true, run: onClose }]);
  return (
    <form
      ref={frame}
      className="action-panel panel"
      aria-label={title}
      onSubmit={(event) => {
        event.preventDefault();
        if (!disabled && !sending.isPending && !isOffline) sending.mutate();
      }}
    >
      {children}
      {sending.isError ? <Refused hold={hold} error={sending.error} /> : null}
      <div className="bulk-row">
        <button type="submit" className="button primary" disabled={disabled || sending.isPending || isOffline}>{submit}</button>
        <button type="button" className="button" onClick={onClose}>{t("cancel")}</button>
      </div>
    </form>
  );
}

function Refused({ hold, error }: { hold: Hold; error: unknown }) {
  const { title, hint } = failureOf(error);
  const now = new Date(useNow());
  return <p role="alert" className="field-error small">{[reasonText(title, hold, t("thisQuestion"), now), hint].filter(Boolean).join(" ")}</p>;
}

function Person({ id, label, help, value, onChange }: { id: string; label: string; help: string; value: string; onChange: (name: string) => void }) {
  // A directory that the server does not ask has nobody who would get the question.
  const { directory } = useSession();
  const people = useQuery({ queryKey: ["people"], queryFn: listPeople, staleTime: 60_000, enabled: directory === "store" });
  return (
    <div className="field">
      <label className="field-label" htmlFor={id}>{label}</label>
      <input id={id} list={`${id}-people`} autoComplete="off" value={value} aria-describedby={`${id}-help`} onChange={(event) => onChange(event.target.value)} />
      <datalist id={`${id}-people`}>{people.data?.map((name) => <option key={name} value={name}>{name}</option>)}</datalist>
      <p id={`${id}-help`} className="muted small">{help}</p>
    </div>
  );
}

export function ReassignPanel({ hold, onDone, onClose }: PanelProps) {
  const [to, setTo] = useState("");
  const [reason, setReason] = useState("");
  return (
    <Frame hold={hold} title={word("reassign")} submit={word("reassign")} disabled={!to.trim()} act={() => reassign(hold, to.trim(), reason.trim())} onDone={onDone} onClose={onClose}>
      <Person id="reassign-to" label={t("reassignTo")} help={t("assigneeHelp")} value={to} onChange={setTo} />
      <div className="field">
        <label className="field-label" htmlFor="reassign-reason">{t("reason")}</label>
        <input id="reassign-reason" value={reason} onChange={(event) => setReason(event.target.value)} />
      </div>
    </Frame>
  );
}

const HOUR = 3_600_000;
const SPANS = [
  ["1", "anHour"],
  ["4", "fourHours"],
  ["24", "aDay"],
  ["168", "aWeek"],
] as const;

export function SnoozePanel({ hold, onDone, onClose }: PanelProps<Date>) {
  const [hours, setHours] = useState("4");
  const act = async () => {
    const until = new Date(serverNow() + Number(hours) * HOUR);
    await snooze(hold.id, until);
    return until;
  };
  return (
    <Frame hold={hold} title={word("snooze")} submit={word("snooze")} disabled={false} act={act} onDone={onDone} onClose={onClose}>
      <div className="field">
        <label className="field-label" htmlFor="snooze-for">{t("snoozeFor")}</label>
        <select id="snooze-for" value={hours} onChange={(event) => setHours(event.target.value)}>
          {SPANS.map(([value, label]) => <option key={value} value={value}>{t(label)}</option>)}
        </select>
        <p className="muted small">{t("snoozeHelp")}</p>
      </div>
    </Frame>
  );
}

/** From the deadline on, or from now where it has passed. */
export function ExtendPanel({ hold, onDone, onClose }: PanelProps) {
  const [hours, setHours] = useState("24");
  const [reason, setReason] = useState("");
  const act = () => extend(hold, new Date(Math.max(serverNow(), hold.expiresAt ? Date.parse(hold.expiresAt) : 0) + Number(hours) * HOUR), reason.trim());
  return (
    <Frame hold={hold} title={t("extend")} submit={t("extend")} disabled={false} act={act} onDone={onDone} onClose={onClose}>
      <div className="field">
        <label className="field-label" htmlFor="extend-by">{t("extendBy")}</label>
        <select id="extend-by" value={hours} onChange={(event) => setHours(event.target.value)}>
          {SPANS.map(([value, label]) => <option key={value} value={value}>{t(label)}</option>)}
        </select>
      </div>
      <div className="field">
        <label className="field-label" htmlFor="extend-reason">{t("reason")}</label>
        <input id="extend-reason" value={reason} onChange={(event) => setReason(event.target.value)} />
      </div>
    </Frame>
  );
}

export function AskPanel({ hold, onDone, onClose }: PanelProps) {
  const { person } = useSession();
  const [text, setText] = useState("");
  const [to, setTo] = useState("");
  // The person who started the run would ask themselves: they name another person.
  const starter = hold.startedBy === person ? "" : hold.startedBy;
  const isComplete = text.trim() !== "" && (to.trim() !== "" || starter !== "");
  return (
    <Frame hold={hold} title={word("ask")} submit={word("ask")} disabled={!isComplete} act={() => ask(hold.id, text.trim(), to.trim())} onDone={onDone} onClose={onClose}>
      <div className="field">
        <label className="field-label" htmlFor="ask-text">{t("yourQuestion")}</label>
        <textarea id="ask-text" rows={2} value={text} onChange={(event) => setText(event.target.value)} />
      </div>
      <Person id="ask-to" label={t("askTo")} help={starter ? t("askHelp", { person: starter }) : t("askHelpNamed")} value={to} onChange={setTo} />
    </Frame>
  );
}
