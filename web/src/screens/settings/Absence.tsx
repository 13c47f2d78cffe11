/** Your own absence: a substitute may act for you meanwhile. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useRight, useSession } from "@/app/useSession";
import { AbsenceForm } from "@/components/AbsenceForm";
import { isLost } from "@/components/isLost";
import { Moment } from "@/components/Moment";
import { Forbidden, Notice, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useAction } from "@/components/useAction";
import type { Away } from "@/services/operations";
import { endOwnAbsence, getOwnAbsence, putOwnAbsence } from "@/services/settings";
import { t } from "./text";

const OWN = ["settings", "absence"];

export function Absence() {
  const mayWrite = useRight("holds:write");
  const { directory } = useSession();
  const own = useQuery({ queryKey: OWN, queryFn: getOwnAbsence, enabled: directory === "store" });
  if (directory !== "store") return <Notice title={t("unusedDirectory")} hint={t("unusedDirectoryHint", { directory })} />;
  if (own.isPending) return <Skeleton rows={2} />;
  if (isLost(own)) return <Problem error={own.error} onRetry={() => void own.refetch()} />;
  if (own.data === null) return <Notice title={t("notListed")} hint={t("notListedHint")} />;
  if (!mayWrite) return <Forbidden right="holds:write" />;
  return own.data.away ? <Current away={own.data.away} /> : <Begin />;
}

function Begin() {
  const { person } = useSession();
  const client = useQueryClient();
  return <AbsenceForm person={person} hint={t("absenceHint")} save={putOwnAbsence} onSaved={() => void client.invalidateQueries({ queryKey: OWN })} />;
}

function Current({ away }: { away: Away }) {
  const client = useQueryClient();
  const ending = useAction({ mutationFn: endOwnAbsence, onSuccess: () => client.invalidateQueries({ queryKey: OWN }) });
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
