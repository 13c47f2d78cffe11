/** What is asked, of whom and why, until when, and who else looks at it. */
import { useEffect, useRef } from "react";
import { useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { roughly } from "@/models/time";
import type { Hold } from "@/services/holds";
import { type Shown, holdWord, priorityWord } from "@/words";
import { type ActionsProps, HoldActions } from "./HoldActions";
import { t } from "./text";
import { usePresence } from "./usePresence";

type HeadProps = { onBack: () => void } & ActionsProps;

export function Head({ onBack, ...actions }: HeadProps) {
  const { hold } = actions;
  const heading = useRef<HTMLHeadingElement>(null);
  const { person } = useSession();
  const others = usePresence(hold.id).filter((each) => each !== person);
  const priority = priorityWord(hold.priority);
  // A screen reader begins with the question, unless the reader goes through the list. Mounted anew for each hold.
  useEffect(() => {
    const list = document.activeElement?.closest<HTMLElement>(".rows");
    if (!list || list.offsetParent === null) heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <header className="hold-head">
      <button type="button" className="button quiet back" onClick={onBack}>
        {t("back")}
      </button>
      <div className="hold-line">
        <StatusBadge shown={shownStatus(hold)} />
        {priority.rank >= 2 ? <span className={`rank-${priority.rank} small`}><strong>{priority.word}</strong></span> : null}
        {hold.status === "pending" && hold.placedUntil === null && hold.expiresAt ? <Due at={hold.expiresAt} isPaused={hold.isPaused} /> : null}
        <HoldActions {...actions} />
      </div>
      <h2 ref={heading} tabIndex={-1} className="hold-title" data-rest="">
        {hold.title}
      </h2>
      <p className="muted small">
        {hold.assignee ? t("for", { who: hold.assignee }) : t("nobody")}
        {hold.why ? ` · ${t("why", { why: hold.why })}` : ""}
        {hold.claimedBy ? ` · ${t("claimedBy", { person: hold.claimedBy })}` : ""}
        {others.length > 0 ? ` · ${t("viewing", { people: others.join(", "), count: others.length })}` : ""}
      </p>
    </header>
  );
}

/** The option's label, also of a decision that can still be undone. */
function shownStatus(hold: Hold): Shown {
  if (hold.placedUntil !== null) return { ...holdWord("resolved"), word: t("notFinal", { decision: hold.placedLabel || t("submit") }) };
  return { ...holdWord(hold.status), ...(hold.outcome?.label ? { word: hold.outcome.label } : {}) };
}

function Due({ at, isPaused }: { at: string; isPaused: boolean }) {
  const left = new Date(at).getTime() - useNow();
  if (isPaused) return <span className="muted small">{t("deadlinePaused")}</span>;
  return (
    <span className={left < 0 ? "late small" : "muted small"}>
      <Moment at={at} text={left < 0 ? t("overdue", { time: roughly(left) }) : t("due", { time: roughly(left) })} />
    </span>
  );
}
