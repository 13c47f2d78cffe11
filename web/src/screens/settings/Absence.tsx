/** Your own absence: a substitute may act for you meanwhile. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useRight, useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { type Away, listPeople } from "@/services/operations";
import { endOwnAbsence, getOwnAbsence, putOwnAbsence } from "@/services/settings";
import { instantOf } from "./instant";
import { t } from "./text";

export function Absence() {
  const mayWrite = useRight("holds:write");
  const own = useQuery({ queryKey: ["settings", "absence"], queryFn: getOwnAbsence });
  if (own.isPending) return <Skeleton rows={2} />;
  if (own.isError) return <Problem error={own.error} onRetry={() => void own.refetch()} />;
  if (own.data === null) return <Notice title={t("notListed")} hint={t("notListedHint")} />;
  if (!mayWrite) return <Forbidden right="holds:write" />;
  return own.data.away ? <Current away={own.data.away} /> : <AwayForm />;
}

function useChange<T>(act: (given: T) => Promise<void>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: act,
    onSuccess: () => client.invalidateQueries({ queryKey: ["settings", "absence"] }),
  });
}

function Current({ away }: { away: Away }) {
  const ending = useChange<void>(endOwnAbsence);
  return (
    <>
      <p>
        {t("awayWith", { name: away.substitute })}
        {away.since ? <> {t("from")} <Moment at={away.since} /></> : null}
        {away.until ? <> {t("until")} <Moment at={away.until} /></> : null}
      </p>
      {ending.isError ? <Problem error={ending.error} /> : null}
      <button type="button" className="button" disabled={ending.isPending} onClick={() => ending.mutate()}>
        {t("end")}
      </button>
    </>
  );
}

function AwayForm() {
  const { person } = useSession();
  const people = useQuery({ queryKey: ["operations", "people"], queryFn: listPeople });
  const [substitute, setSubstitute] = useState("");
  const [since, setSince] = useState("");
  const [until, setUntil] = useState("");
  const saving = useChange<Away>(putOwnAbsence);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    saving.mutate({ substitute, since: instantOf(since), until: instantOf(until) });
  };
  return (
    <form className="away-form" onSubmit={submit}>
      <p className="muted">{t("absenceHint")}</p>
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
      <button type="submit" className="button primary" disabled={saving.isPending}>
        {t("begin")}
      </button>
    </form>
  );
}
