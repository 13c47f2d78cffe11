/** What a run has made for its caller, to be saved. */
import { useQuery } from "@tanstack/react-query";
import { PASSING } from "@/app/query";
import { useSeldom } from "@/live/useRest";
import { plainText } from "@/models/values";
import type { Run } from "@/services/runs";
import { artifactAddress, listArtifacts } from "@/services/steps";
import { t } from "./text";

const MOST = 20;

export function RunArtifacts({ run }: { run: Run }) {
  // Read again when the run has moved.
  const head = useSeldom(run.head);
  const found = useQuery({ queryKey: ["artifacts", run.id, head], queryFn: () => listArtifacts(run.id), gcTime: PASSING, placeholderData: (old) => old });
  const names = found.data ?? [];
  if (names.length === 0) return null;
  return (
    <p className="small run-line">
      {t("artifacts")}
      {names.slice(0, MOST).map((name) => <a key={name} href={artifactAddress(run.id, name)} download>{plainText(name)}</a>)}
      {names.length > MOST ? <span className="muted">{t("moreArtifacts", { count: names.length - MOST })}</span> : null}
    </p>
  );
}
