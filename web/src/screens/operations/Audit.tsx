/** The record of who did what. Its filters are in the address; Verify names the first record that is wrong. */
import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { Icon } from "@/components/Icon";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Value } from "@/components/Value";
import "@/components/values.css";
import { type AuditRecord, type Verification, listAudit, verifyAudit } from "@/services/operations";
import { More } from "./More";
import { Answered, type Column, None, Table } from "./Panel";
import { t } from "./text";

const COLUMNS: Column<AuditRecord>[] = [
  { label: t("record"), cell: (row) => row.seq },
  { label: t("time"), cell: (row) => <Moment at={row.at} /> },
  { label: t("actor"), cell: (row) => row.actor },
  { label: t("action"), cell: (row) => <span className="code">{row.action}</span> },
  { label: t("part"), cell: (row) => row.module },
  { label: t("run"), cell: (row) => (row.run ? <span className="code">{row.run.slice(0, 8)}</span> : <None />) },
];

export function Audit() {
  const { actor = "", action = "" } = useSearch({ strict: false });
  const isFiltered = actor !== "" || action !== "";
  const navigate = useNavigate();
  const clear = () => void navigate({ to: "/operations/$panel", params: { panel: "audit" }, search: {} });
  const pages = useInfiniteQuery({
    queryKey: ["operations", "audit", actor, action],
    queryFn: ({ pageParam }) => listAudit({ actor, action }, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
  });
  return (
    <>
      <div className="panel-bar">
        <Filter key={`${actor} ${action}`} actor={actor} action={action} />
        <Verify />
      </div>
      <Answered query={pages}>
        {(data) => (
          <Table
            label={t("audit")}
            rows={data.pages.flatMap((page) => page.items)}
            columns={COLUMNS}
            keyOf={(row) => String(row.seq)}
            empty={isFiltered ? t("noMatch") : t("noAudit")}
            hint={isFiltered ? t("noMatchHint") : t("noAuditHint")}
            onClear={isFiltered ? clear : undefined}
            More={Detail}
          />
        )}
      </Answered>
      <More query={pages} />
    </>
  );
}

function Filter(given: { actor: string; action: string }) {
  const navigate = useNavigate();
  const [actor, setActor] = useState(given.actor);
  const [action, setAction] = useState(given.action);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const search = { ...(actor.trim() ? { actor: actor.trim() } : {}), ...(action.trim() ? { action: action.trim() } : {}) };
    void navigate({ to: "/operations/$panel", params: { panel: "audit" }, search });
  };
  return (
    <form className="filter" onSubmit={submit}>
      <label>
        <span>{t("actor")}</span>
        <input value={actor} placeholder={t("actorExample")} onChange={(event) => setActor(event.target.value)} />
      </label>
      <label>
        <span>{t("action")}</span>
        <input value={action} placeholder={t("actionExample")} onChange={(event) => setAction(event.target.value)} />
      </label>
      <button type="submit" className="button">
        {t("filter")}
      </button>
    </form>
  );
}

function Verify() {
  const verifying = useMutation({ mutationFn: verifyAudit });
  return (
    <div className="verify">
      <button type="button" className="button" disabled={verifying.isPending} onClick={() => verifying.mutate()}>
        {t("verify")}
      </button>
      <output>{verifying.data ? <Verdict found={verifying.data} /> : null}</output>
      {verifying.isError ? <Problem error={verifying.error} /> : null}
    </div>
  );
}

function Verdict({ found }: { found: Verification }) {
  return found.whole ? (
    <span className="badge role-completed">
      <Icon name="check" />
      {t("whole", { count: found.records })}
    </span>
  ) : (
    <span className="verdict role-failed">
      <Icon name="cross" />
      {t("notWhole", { seq: found.seq ?? 0, why: found.why })}
    </span>
  );
}

function Detail({ row: record }: { row: AuditRecord }) {
  return (
    <dl className="more-facts">
      <div>
        <dt>{t("data")}</dt>
        <dd>
          <Value value={record.data} rawNames />
        </dd>
      </div>
      <div>
        <dt>{t("hash")}</dt>
        <dd className="code small">{record.hash}</dd>
      </div>
    </dl>
  );
}
