/** Says what an action on a run would do, in the server's words, before it is done. */
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { Dialog } from "@/components/Dialog";
import { Problem } from "@/components/Problem";
import { Skeleton } from "@/components/Skeleton";
import { focusField } from "@/components/FormSummary";
import { useAction } from "@/components/useAction";
import { useSettled } from "@/components/useSettled";
import { writeJson } from "@/models/json";
import { type Patch, patchOf } from "@/models/tree";
import { failureOf } from "@/services/client";
import { type ActionPreview, type Run, type RunAction, changeRun, previewAction, previewWay } from "@/services/runs";
import { word } from "@/words";
import { type Faults, StateEditor } from "./StateEditor";
import { t } from "./text";

export const ACTION_WORDS = { cancel: "cancelRun", resume: "resume", retry: "retryRun", fork: "fork", rewind: "rewind" } as const;
const BRANCHES = new Set<RunAction>(["fork", "rewind"]);
const NO_PATCH: Patch = patchOf({}, {});

type DialogProps = { run: Run; action: RunAction; record: number | undefined; onClose: () => void };

export function ActionDialog({ run, action, record: given, onClose }: DialogProps) {
  const [head] = useState(run.head);
  // A state that is edited stays that of one record, also while the run moves on.
  const [record] = useState(BRANCHES.has(action) ? (given ?? head) : given);
  // Asked anew whenever the run has moved.
  const preview = useQuery({
    queryKey: ["preview", run.id, action, record, run.head, run.status],
    queryFn: () => previewAction(run.id, action, record),
    placeholderData: keepPreviousData,
    gcTime: 0,
  });
  return (
    <Dialog title={t("actionTitle", { action: word(ACTION_WORDS[action]), flow: run.flow, run: run.id.slice(0, 8) })} onClose={onClose} size="lg">
      {run.head === head ? null : <p className="late" role="alert">{t("movedNow")}</p>}
      {preview.isPending ? <Skeleton rows={2} /> : null}
      {preview.isError ? <Problem error={preview.error} onRetry={() => void preview.refetch()} /> : null}
      {preview.data ? (
        <Act run={run} action={action} preview={preview.data} isOld={preview.isPlaceholderData} onAgain={() => void preview.refetch()} onClose={onClose} />
      ) : null}
    </Dialog>
  );
}

type ActProps = { run: Run; action: RunAction; preview: ActionPreview; isOld: boolean; onAgain: () => void; onClose: () => void };

function Act({ run, action, preview, isOld, onAgain, onClose }: ActProps) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const [patch, setPatch] = useState<Patch | null>(NO_PATCH);
  const [faults, setFaults] = useState<Faults>({});
  const [shownFaults, setShownFaults] = useState<Faults>({});
  const [agreedTo, setAgreedTo] = useState("");
  const agreed = agreedTo === preview.etag;
  const branches = BRANCHES.has(action);
  const acting = useAction({
    mutationFn: () =>
      changeRun(run, action, preview.etag, { record: branches ? preview.record : undefined, scratch: patch?.scratch, repeatEffects: agreed, reason: t("cancelReason") }),
    onSuccess: (id) => {
      void client.invalidateQueries({ queryKey: ["run", run.id] });
      onClose();
      if (id !== run.id) void navigate({ to: "/runs/$run", params: { run: id } });
    },
  });
  const failure = acting.isError ? failureOf(acting.error) : null;
  // What the server refuses to repeat without consent, although the preview did not foresee it.
  const refused = failure?.code === "repeats_effects" ? namesOf(failure.facts["nodes"]) : [];
  const repeated = action === "cancel" ? [] : [...new Set([...preview.repeated, ...refused])];
  const needsAssent = repeated.length > 0;
  const isEdited = patch !== null && Object.keys(patch.scratch).length > 0;
  const hasMoved = failure?.kind === "changed";
  const isReady = patch !== null && patch.removed.length === 0 && (!needsAssent || agreed) && !hasMoved && !isOld;
  const edit = (next: Patch | null, wrong: Faults) => {
    setPatch(next);
    setFaults(wrong);
    setShownFaults((old) => Object.fromEntries(Object.entries(old).filter(([field]) => field in wrong)));
  };
  const act = () => {
    const first = Object.keys(faults)[0];
    if (first === undefined) return acting.mutate();
    setShownFaults(faults);
    requestAnimationFrame(() => focusField(first));
  };
  return (
    <>
      <ul className="sentences">
        {preview.text.map((each) => <li key={each}>{each}</li>)}
        {isEdited ? <li><strong>{t("editedFork")}</strong></li> : null}
      </ul>
      {isEdited ? <NewWay run={run.id} action={action} record={preview.record} scratch={patch.scratch} /> : null}
      {branches ? <StateEditor run={run.id} record={preview.record} patch={patch} errors={shownFaults} onEdit={edit} /> : null}
      {needsAssent ? (
        <label className="assent">
          <input type="checkbox" checked={agreed} onChange={(event) => setAgreedTo(event.target.checked ? preview.etag : "")} />
          <span>{t("mayRepeat", { nodes: repeated.join(", ") })}</span>
        </label>
      ) : null}
      {hasMoved ? (
        <div className="run-error" role="alert">
          <p>{t("moved")}</p>
          <button type="button" className="button" onClick={() => { acting.reset(); onAgain(); }}>{t("readAgain")}</button>
        </div>
      ) : null}
      {acting.isError && !hasMoved && !(refused.length > 0 && agreed) ? <Problem error={acting.error} /> : null}
      <div className="dialog-buttons">
        <button type="button" className="button" onClick={onClose}>{t("keepRun")}</button>
        <button type="button" className={`button ${action === "cancel" ? "danger" : "primary"}`} disabled={!isReady || acting.isOff} onClick={act}>
          {word(ACTION_WORDS[action])}
        </button>
      </div>
    </>
  );
}

const QUIET = 600;

/** What the new run does with the edited state, up to its next questions and outside effects. */
function NewWay({ run, action, record, scratch }: { run: string; action: RunAction; record: number; scratch: Patch["scratch"] }) {
  const settled = useSettled(scratch, QUIET);
  const way = useQuery({
    queryKey: ["preview", run, action, record, writeJson(settled)],
    queryFn: () => previewWay(run, action, record, settled),
    placeholderData: keepPreviousData,
    gcTime: 0,
    retry: false,
  });
  if (way.isPending) return <Skeleton rows={1} />;
  if (way.isError) return <Problem error={way.error} onRetry={() => void way.refetch()} />;
  return (
    <section aria-label={t("newWay")} aria-busy={way.isFetching || settled !== scratch}>
      <h3 className="new-way">{t("newWay")}</h3>
      <ul className="sentences">
        {way.data.map((each, place) => <li key={place}>{each}</li>)}
        {way.data.length === 0 ? <li>{t("newWayNothing")}</li> : null}
      </ul>
    </section>
  );
}

function namesOf(nodes: unknown): string[] {
  return Array.isArray(nodes) ? nodes.filter((each) => typeof each === "string") : [];
}
