/** What each option would lead to, with the values in the form: the server continues the run without doing anything. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { isLost } from "@/components/isLost";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useSettled } from "@/components/useSettled";
import { writeJson } from "@/models/json";
import { type Form, type Values, answerData } from "@/models/form";
import { typedFields } from "@/models/typed";
import { type Hold, type OptionConsequences, getConsequences, previewAnswer } from "@/services/holds";
import { t } from "./text";

const QUIET = 600;
type ConsequencesProps = { hold: Hold; form: Form; values: Values };

export function Consequences({ hold, form, values }: ConsequencesProps) {
  const settled = useSettled(values, QUIET);
  const isTyped = typedFields(form, settled).length > 0;
  const asked = isTyped ? writeJson(settled) : "";
  const query = useQuery({
    queryKey: ["consequences", hold.id, hold.version, asked],
    queryFn: () => (isTyped ? previewTyped(hold, form, settled) : getConsequences(hold.id)),
    placeholderData: keepPreviousData,
    retry: false,
  });
  if (isLost(query)) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  if (query.isPending) return <Skeleton rows={3} />;
  return (
    <section className="consequences" aria-label={t("consequences")} aria-busy={query.isFetching}>
      <h3>{t("consequences")}</h3>
      <p className="muted small">{isTyped ? t("withTyped") : t("withProposed")}</p>
      {query.data.map((each) => (
        <div key={each.option} className="consequence">
          <h4>{each.label || t("submit")}</h4>
          <ol>
            {each.entries.map((entry, place) => (
              <li key={place} className={`entry-${entry.kind}`}>
                <span className="entry-kind small">{kindWord(entry.kind)}</span>
                <span>{entry.text}</span>
              </li>
            ))}
          </ol>
          {each.entries.length === 0 ? <p className="muted">{t("nothingFollows")}</p> : null}
        </div>
      ))}
    </section>
  );
}

/** Each option with its own data: fields that it does not ask for are not sent. */
async function previewTyped(hold: Hold, form: Form, values: Values): Promise<OptionConsequences[]> {
  const options = hold.options.length > 0 ? hold.options.map((each) => each.id) : ["submit"];
  const found = await Promise.all(
    options.map((decision) => previewAnswer(hold.id, decision, answerData(form, { values, decision, context: hold.context }))),
  );
  return found.flat();
}

const KINDS = {
  step: "kindStep",
  effect: "kindEffect",
  question: "kindQuestion",
  sleep: "kindSleep",
  failure: "kindFailure",
  end: "kindEnd",
  unknown: "kindUnknown",
} as const;

/** Also for a kind that only a newer server has: its own name. */
function kindWord(kind: string): string {
  return Object.hasOwn(KINDS, kind) ? t(KINDS[kind as keyof typeof KINDS]) : kind;
}
