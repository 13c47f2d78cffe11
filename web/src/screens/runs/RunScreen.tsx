/** One run: its status, timeline, events, and the state at a checkpoint. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams, useSearch } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Boundary } from "@/components/Boundary";
import { Moment } from "@/components/Moment";
import { Forbidden, Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { StatusBadge } from "@/components/StatusBadge";
import { useNow } from "@/components/useNow";
import { useGaps, useRunChanges } from "@/live/useLive";
import { shortTime } from "@/models/time";
import { type Run, cancelRun, getRun, resumeRun } from "@/services/runs";
import { runWord, word } from "@/words";
import { Events } from "./Events";
import type { RunTab } from "./routes";
import "./runs.css";
import { StateAtCheckpoint } from "./StateAtCheckpoint";
import { t } from "./text";
import { Visits } from "./Visits";

const TABS: readonly RunTab[] = ["timeline", "events", "state"];

export function RunScreen() {
  const { run: id = "" } = useParams({ strict: false });
  const mayRead = useRight("runs:read");
  return (
    <main id="main" tabIndex={-1} className="page">
      {mayRead ? <RunPage key={id} id={id} /> : <Forbidden right="runs:read" />}
    </main>
  );
}

function RunPage({ id }: { id: string }) {
  const search = useSearch({ strict: false });
  const client = useQueryClient();
  const gaps = useGaps();
  const run = useQuery({ queryKey: ["run", id, "row", gaps], queryFn: () => getRun(id), placeholderData: (before) => before });
  // From the last known event on: what came before is read by each tab.
  useRunChanges(run.data ? id : null, run.data?.eventSeq ?? 0, () => void client.invalidateQueries({ queryKey: ["run", id] }));
  if (run.isPending) return <Skeleton />;
  if (run.isError) return <Problem error={run.error} onRetry={() => void run.refetch()} />;
  const tab = TABS.find((each) => each === search.tab) ?? "timeline";
  return (
    <>
      <Head run={run.data} />
      <nav className="tabs" aria-label={t("parts")}>
        {TABS.map((name) => (
          <Link key={name} to="/runs/$run" params={{ run: id }} search={{ tab: name }} aria-current={tab === name ? "page" : undefined}>
            {t(name as "timeline")}
          </Link>
        ))}
      </nav>
      <Boundary resetKey={tab}>
        {tab === "timeline" ? <Visits run={id} /> : null}
        {tab === "events" ? <Events run={id} /> : null}
        {tab === "state" ? <StateAtCheckpoint run={id} at={search.at} /> : null}
      </Boundary>
    </>
  );
}

function Head({ run }: { run: Run }) {
  const now = useNow();
  return (
    <header className="run-head">
      <p className="muted small">
        <Link to="/runs">{t("title")}</Link> {"›"} <Link to="/runs" search={{ q: `flow:${run.flow}` }}>{run.flow}</Link>
      </p>
      <div className="run-line">
        <h1>
          {run.flow} <span className="code muted">{run.id.slice(0, 8)}</span>
        </h1>
        <StatusBadge shown={runWord(run.status, run.wakesAt ? shortTime(new Date(run.wakesAt), new Date(now)) : "")} />
        <Actions run={run} />
      </div>
      <p className="muted small">
        {t("version", { version: run.version.slice(0, 12) })} {"·"} {t("startedAt")} <Moment at={run.createdAt} />
        {run.startedBy ? ` · ${t("startedBy", { person: run.startedBy })}` : ""}
      </p>
      {run.error ? <p className="run-error">{run.error}</p> : null}
      {run.status === "pending_input" ? (
        <p>
          <Link to="/inbox/$view" params={{ view: "all" }} search={{ q: `run:${run.id}` }}>{t("openQuestions")}</Link>
        </p>
      ) : null}
    </header>
  );
}

const ENDED = new Set(["completed", "failed", "cancelled"]);

function Actions({ run }: { run: Run }) {
  const mayWrite = useRight("runs:write");
  const client = useQueryClient();
  const acting = useMutation({
    mutationFn: (act: "cancel" | "resume") => (act === "cancel" ? cancelRun(run.id, t("cancelReason")) : resumeRun(run.id)),
    onSettled: () => client.invalidateQueries({ queryKey: ["run", run.id] }),
  });
  if (!mayWrite || run.readOnly) return null;
  return (
    <span className="run-actions">
      {run.status === "failed" || run.status === "resumable" ? (
        <button type="button" className="button primary" disabled={acting.isPending} onClick={() => acting.mutate("resume")}>
          {word("resume")}
        </button>
      ) : null}
      {ENDED.has(run.status) ? null : (
        <button type="button" className="button danger" disabled={acting.isPending} onClick={() => acting.mutate("cancel")}>
          {word("cancelRun")}
        </button>
      )}
      {acting.isError ? <Problem error={acting.error} /> : null}
    </span>
  );
}
