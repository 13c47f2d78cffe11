/** What was decided: the decided values, with the proposal beside each edit. Never the defaults of the form. */
import { Moment } from "@/components/Moment";
import { Value } from "@/components/Value";
import { valueText } from "@/models/values";
import type { Hold } from "@/services/holds";
import { holdWord } from "@/words";
import { t } from "./text";

export function Outcome({ hold }: { hold: Hold }) {
  const outcome = hold.outcome;
  if (outcome === null) {
    return (
      <section className="outcome panel">
        <p>
          <strong>{t("placed", { person: hold.placedBy })}</strong>
        </p>
      </section>
    );
  }
  // The decision itself stands above.
  const values = outcome.values.filter((each) => each.field !== "decision");
  return (
    <section className={`outcome panel role-${holdWord(hold.status).role}-edge`} aria-label={t("outcome")}>
      <h3>{t("outcome")}</h3>
      <p className="outcome-line">
        <strong>{hold.status === "resolved" ? outcome.label : holdWord(hold.status).word}</strong>
        <span className="muted">
          {outcome.by ? t("by", { person: outcome.by }) : null} {outcome.at ? <Moment at={outcome.at} /> : null}
          {outcome.channel ? ` · ${t("channel", { channel: outcome.channel })}` : ""}
        </span>
      </p>
      {outcome.comment ? <blockquote>{outcome.comment}</blockquote> : null}
      {values.length > 0 ? (
        <dl className="facts decided">
          {values.map((each) => (
            <div key={each.field}>
              <dt>{each.label}</dt>
              <dd>
                <Value value={each.value} />
                {each.edited ? <span className="was small">{t("proposed", { value: valueText(each.proposed) })}</span> : null}
              </dd>
            </div>
          ))}
        </dl>
      ) : null}
      {hold.resumedAt ? (
        <p className="muted small">
          {t("resumed")} <Moment at={hold.resumedAt} />
        </p>
      ) : null}
    </section>
  );
}
