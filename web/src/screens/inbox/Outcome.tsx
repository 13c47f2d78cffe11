/** What was decided: the decided values, with the proposal beside each edit. Never the defaults of the form. */
import { useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Value } from "@/components/Value";
import type { Form, Section } from "@/models/form";
import { plainText, valueText } from "@/models/values";
import type { Hold, Outcome as Decided } from "@/services/holds";
import { holdWord } from "@/words";
import { placedText } from "./placedText";
import { ShadowAnswer } from "./ShadowAnswer";
import { t } from "./text";
import { UndoButton } from "./UndoButton";

export function Outcome({ hold, form, onUndone }: { hold: Hold; form: Form; onUndone: (hold: Hold) => void }) {
  const { person } = useSession();
  const outcome = hold.outcome;
  if (outcome === null) {
    return (
      <section className="outcome panel" aria-label={t("outcome")}>
        <p>
          <strong>{placedText(hold)}</strong>
        </p>
        {hold.placedBy === person ? <UndoButton hold={hold} onUndone={onUndone} /> : null}
      </section>
    );
  }
  const kinds = new Map(form.sections.map((each) => [each.field, each]));
  // The decision itself stands above.
  const values = outcome.values.filter((each) => each.field !== "decision");
  return (
    <section className={`outcome panel role-${holdWord(hold.status).role}-edge`} aria-label={t("outcome")}>
      <h3>{t("outcome")}</h3>
      <p className="outcome-line">
        <strong>{hold.status === "resolved" ? outcome.label : holdWord(hold.status).word}</strong>
        <span className="muted">
          {outcome.by ? t("by", { person: outcome.by }) : null} {outcome.at ? <Moment at={outcome.at} /> : null}
          {factsOf(outcome).map((each) => ` · ${each}`)}
        </span>
      </p>
      {outcome.comment ? <blockquote>{outcome.comment}</blockquote> : null}
      {values.length > 0 ? (
        <dl className="facts decided">
          {values.map((each) => (
            <div key={each.field}>
              <dt>{each.label}{unitOf(kinds.get(each.field))}</dt>
              <dd>
                {isCode(kinds.get(each.field)) && typeof each.value === "string" && each.value ? <pre className="code decided-code">{plainText(each.value)}</pre> : <Value value={each.value} />}
                {each.edited ? <span className="was small">{t("proposed", { value: plainText(valueText(each.proposed)) })}</span> : null}
              </dd>
            </div>
          ))}
        </dl>
      ) : null}
      {hold.shadow ? <ShadowAnswer shadow={hold.shadow} /> : null}
      {hold.status === "resolved" ? (
        <p className="muted small">
          {hold.resumedAt ? <>{t("resumed")} <Moment at={hold.resumedAt} /></> : t("notResumed")}
        </p>
      ) : null}
    </section>
  );
}

const isCode = (section: Section | undefined) => section?.kind === "code" || section?.kind === "diff";

/** As beside the field. */
const unitOf = (section: Section | undefined) => (section?.currency ? ` (${section.currency})` : "");

const CHANNELS = {
  inbox: "chInbox", api: "chApi", cli: "chCli", link: "chLink", mail: "chMail", slack: "chSlack",
  teams: "chTeams", queue: "chQueue", mcp: "chMcp", system: "chSystem",
} as const;

/** How it came about. */
function factsOf(outcome: Decided): string[] {
  const { channel, rule, onBehalfOf, overrideReason } = outcome;
  const way = Object.hasOwn(CHANNELS, channel) ? t(CHANNELS[channel as keyof typeof CHANNELS]) : t("chOther", { channel });
  return [
    outcome.isAutomatic ? t("automatic") : channel ? way : "",
    outcome.isLate ? t("late") : "",
    rule ? t("byRule", { rule }) : "",
    onBehalfOf ? t("onBehalf", { person: onBehalfOf }) : "",
    overrideReason ? t("override", { reason: overrideReason }) : "",
  ].filter(Boolean);
}
