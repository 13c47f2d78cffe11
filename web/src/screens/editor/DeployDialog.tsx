/** What would change, and which live runs would not fit, before the document is deployed. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { useAction } from "@/components/useAction";
import { OUT } from "@/models/documentData";
import { plainText, valueText } from "@/models/values";
import { failureOf } from "@/services/client";
import { type Change, type Diff, type PartDiff, type Problem as Found, brokenRuns, deployText, diffToCurrent } from "@/services/documents";
import { t } from "./text";
import type { Saved } from "./useSaved";

const MOST_BROKEN = 20;
type DeployProps = { saved: Saved; problems: Found[]; onClose: () => void; onProblems: () => void };

export function DeployDialog({ saved, problems, onClose, onProblems }: DeployProps) {
  const errors = problems.filter((each) => each.severity === "error").length;
  return (
    <Dialog title={t("deployTitle", { name: saved.name })} size="lg" onClose={onClose}>
      {errors > 0 || saved.edited.problem !== null ? (
        <>
          <p className="late">{t("hasErrors", { count: Math.max(errors, 1) })}</p>
          <button type="button" className="button primary" onClick={onProblems}>{t("problems")}</button>
        </>
      ) : (
        <Consequences saved={saved} onClose={onClose} />
      )}
    </Dialog>
  );
}

function Consequences({ saved, onClose }: { saved: Saved; onClose: () => void }) {
  const client = useQueryClient();
  const { edited: { text }, format, name } = saved;
  const found = useQuery({
    queryKey: ["documents", "deploy", name, text],
    queryFn: async () => ({ diff: saved.server.version ? await diffToCurrent(name, text, format) : null, broken: await brokenRuns(text, format) }),
    gcTime: 0,
    retry: false,
  });
  const deploying = useAction({
    mutationFn: async () => {
      // What runs is also what is saved; if another person has saved meanwhile, nothing is deployed.
      if (saved.isChanged) await saved.saveFirst();
      return deployText(text, format);
    },
    onError: (error) => {
      if (failureOf(error).kind === "changed") onClose();
    },
    onSuccess: () => {
      void saved.setDeployed();
      void client.invalidateQueries({ queryKey: ["flows"] });
    },
  });
  if (found.isPending) return <Skeleton rows={3} />;
  if (found.isError) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  if (deploying.data) {
    return <Deployed name={name} version={deploying.data} />;
  }
  const { diff, broken } = found.data;
  if (diff?.isSame && diff.layout.length === 0 && saved.server.version && !saved.server.savedBy && !saved.isChanged) return <p>{t("nothingToDeploy")}</p>;
  return (
    <>
      {diff === null ? <p>{t("firstVersion")}</p> : <Changes diff={diff} />}
      {broken.length > 0 ? (
        <div className="conflict" role="alert">
          <p>{t("breaks", { count: broken.length })}</p>
          <ul>
            {broken.slice(0, MOST_BROKEN).map((each) => (
              <li key={each.run}>
                <Link to="/runs/$run" params={{ run: each.run }} className="code">{each.run.slice(0, 8)}</Link> {each.node}: {each.why}
              </li>
            ))}
            {broken.length > MOST_BROKEN ? <li className="muted small">{t("moreBroken", { count: broken.length - MOST_BROKEN })}</li> : null}
          </ul>
        </div>
      ) : null}
      <p className="muted small">{t("keepTheirs")}</p>
      {deploying.isError ? <Problem error={deploying.error} /> : null}
      <p className="conflict-tools">
        <button type="button" className="button primary" disabled={deploying.isOff} onClick={() => deploying.mutate()}>{t("deploy")}</button>
        <button type="button" className="button" onClick={onClose}>{t("cancel")}</button>
      </p>
    </>
  );
}

function Deployed({ name, version }: { name: string; version: string }) {
  const next = useRef<HTMLAnchorElement>(null);
  // The button that was pressed has gone.
  useEffect(() => next.current?.focus(), []);
  return (
    <>
      <output>{t("deployed", { version: version.slice(0, 16) })}</output>
      <Link ref={next} to="/flows/$name/start" params={{ name }} className="button primary">{t("startRun")}</Link>
    </>
  );
}

function Changes({ diff }: { diff: Diff }) {
  if (diff.isSame) return <p>{t("sameVersion")}</p>;
  return (
    <section className="deploy-changes" aria-label={t("changes")}>
      <h3>{t("changes")}</h3>
      <ul>
        {diff.nodes.map((each) => <Part key={each.id} part={each} />)}
        {diff.edges.map((each) => <Part key={each.id} part={{ ...each, id: edgeText(each.id) }} />)}
        {diff.settings.length > 0 ? <Part part={{ id: t("settingsOf"), change: "changed", changes: diff.settings }} /> : null}
      </ul>
      {diff.layout.length > 0 ? <p className="muted small">{t("layoutChanges", { count: diff.layout.length })}</p> : null}
    </section>
  );
}

/** `ask:approve->paid`, as the panel of the node writes it. */
function edgeText(id: string): string {
  return id.replace(/^(.*):(.*?)->/, (_, source: string, port: string) => (port === OUT ? `${source} → ` : `${source} (${port}) → `));
}

function Part({ part }: { part: PartDiff }) {
  return (
    <li>
      <span className={`change-${part.change}`}>{t("changedPart", { change: part.change })}</span> <strong>{part.id}</strong>
      {part.change === "changed" ? <ul>{part.changes.map((each) => <Value key={each.path} change={each} />)}</ul> : null}
    </li>
  );
}

function Value({ change }: { change: Change }) {
  return (
    <li className="small">
      <span className="code">{change.path}</span>{" "}
      {change.before === undefined || change.before === null ? null : <del>{plainText(valueText(change.before))}</del>}{" "}
      {change.after === undefined || change.after === null ? null : <ins>{plainText(valueText(change.after))}</ins>}
    </li>
  );
}
