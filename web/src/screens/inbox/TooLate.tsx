/** Somebody else was first: who, what and when, and what was typed here, to be copied. */
import { useState } from "react";
import { Moment } from "@/components/Moment";
import { Value } from "@/components/Value";
import { type TypedField, typedText } from "@/models/typed";
import type { Hold } from "@/services/holds";
import { holdWord } from "@/words";
import { placedText } from "./placedText";
import { t } from "./text";

export function TooLate({ hold, fields, comment }: { hold: Hold; fields: TypedField[]; comment: string }) {
  const [copied, setCopied] = useState(false);
  const text = typedText(fields, comment);
  const copy = () => void navigator.clipboard.writeText(text).then(() => setCopied(true));
  return (
    <section className="conflict too-late" aria-label={t("yours")}>
      <p role="alert">
        <strong>{titleOf(hold)}</strong> {hold.outcome?.at ? <Moment at={hold.outcome.at} /> : null}
      </p>
      {text ? (
        <>
          <p className="small">{t("notSentYours")}</p>
          <dl className="facts">
            {fields.map((each) => (
              <div key={each.field}>
                <dt>{each.label}</dt>
                <dd><Value value={each.value} /></dd>
              </div>
            ))}
            {comment.trim() ? <div><dt>{t("comment")}</dt><dd>{comment}</dd></div> : null}
          </dl>
          <button type="button" className="button" onClick={copy}>
            {copied ? t("copied") : t("copyYours")}
          </button>
        </>
      ) : null}
    </section>
  );
}

function titleOf(hold: Hold): string {
  const person = hold.outcome?.by || hold.placedBy;
  const decision = hold.status === "resolved" ? (hold.outcome?.label ?? "") : hold.outcome ? holdWord(hold.status).word : "";
  if (!person) return t("closedMeanwhile", { decision });
  if (decision) return t("tooLate", { person, decision });
  return placedText(hold);
}
