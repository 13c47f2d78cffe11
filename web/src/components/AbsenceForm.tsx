/** From when until when a person is away, and who may act for them meanwhile. */
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { settings } from "@/locales/en/settings";
import { textOf } from "@/locales/text";
import { instantOf } from "@/models/time";
import { type Away, listPeople } from "@/services/operations";
import "./absence.css";
import { Problem } from "./Problem";
import { useAction } from "./useAction";

const t = textOf(settings);

type FormProps = { person: string; hint: string; save: (away: Away) => Promise<unknown>; onSaved: () => void };

export function AbsenceForm({ person, hint, save, onSaved }: FormProps) {
  const people = useQuery({ queryKey: ["operations", "people"], queryFn: listPeople });
  const [substitute, setSubstitute] = useState("");
  const [since, setSince] = useState("");
  const [until, setUntil] = useState("");
  const saving = useAction({ mutationFn: save, onSuccess: onSaved });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    saving.mutate({ substitute, since: instantOf(since), until: instantOf(until) });
  };
  return (
    <form className="away-form" onSubmit={submit}>
      <p className="muted">{hint}</p>
      <label>
        <span>{t("substitute")}</span>
        <select required value={substitute} onChange={(event) => setSubstitute(event.target.value)}>
          <option value="">{t("choose")}</option>
          {(people.data ?? [])
            .filter((each) => each.active && each.id !== person)
            .map((each) => (
              <option key={each.id} value={each.id}>
                {each.name || each.id}
              </option>
            ))}
        </select>
      </label>
      <div className="two">
        <label>
          <span>{t("since")}</span>
          <input type="datetime-local" value={since} onChange={(event) => setSince(event.target.value)} />
        </label>
        <label>
          <span>{t("till")}</span>
          <input type="datetime-local" value={until} min={since} onChange={(event) => setUntil(event.target.value)} />
        </label>
      </div>
      <p className="muted small">{t("open")}</p>
      {people.isError ? <Problem error={people.error} onRetry={() => void people.refetch()} /> : null}
      {saving.isError ? <Problem error={saving.error} /> : null}
      <button type="submit" className="button primary" disabled={saving.isOff}>
        {t("begin")}
      </button>
    </form>
  );
}
