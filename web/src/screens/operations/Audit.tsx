/** The record of who did what, the newest first. Its filters are in the address; Verify names the first record that is wrong. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Icon } from "@/components/Icon";
import { Moment } from "@/components/Moment";
import { Problem } from "@/components/Problem";
import { Value } from "@/components/Value";
import { useAction } from "@/components/useAction";
import "@/components/values.css";
import { auditWindow, auditWords } from "@/models/auditFilter";
import { partsOf } from "@/models/sentence";
import { type AuditRecord, type Verification, listAudit, verifyAudit } from "@/services/operations";
import { AuditFilters } from "./AuditFilters";
import { More } from "./More";
import { Answered, type Column, None, Table } from "./Panel";
import { t } from "./text";

const COLUMNS: Column<AuditRecord>[] = [
  { label: t("happened"), cell: (row) => <span className="wrapped wide">{partsOf(row).map((part, place) => (typeof part === "string" ? part : <Moment key={place} at={part.at} />))}</span> },
  { label: t("time"), cell: (row) => <Moment at={row.at} seconds /> },
  { label: t("run"), cell: (row) => (row.run ? <Link to="/runs/$run" params={{ run: row.run }} className="code">{row.run.slice(0, 8)}</Link> : <None />) },
  { label: t("record"), cell: (row) => row.seq, isNumber: true },
];

/** A value that leads to the records that have it too. */
function Only({ name, value }: { name: "actor" | "action"; value: string }) {
  const words = auditWords(useSearch({ strict: false }));
  return (
    <Link to="/operations/$panel" params={{ panel: "audit" }} search={{ ...words, [name]: value }} className="only" title={t("onlyThese")}>
      {value}
    </Link>
  );
}

export function Audit() {
  const search = useSearch({ strict: false });
  const words = auditWords(search);
  const isFiltered = Object.keys(words).length > 0;
  const navigate = useNavigate();
  const clear = () => void navigate({ to: "/operations/$panel", params: { panel: "audit" }, search: {} });
  const pages = useInfiniteQuery({
    queryKey: ["operations", "audit", words],
    queryFn: ({ pageParam }) => listAudit(auditWindow(words), pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
  });
  // Without a row the list itself offers it.
  const hasRows = pages.data?.pages.some((page) => page.items.length > 0) ?? false;
  return (
    <>
      <div className="panel-bar">
        <AuditFilters key={JSON.stringify(words)} given={words} onClear={isFiltered && hasRows ? clear : undefined} />
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
            hint={pages.hasNextPage ? t("noMatchYet") : isFiltered ? t("noMatchHint") : t("noAuditHint")}
            onClear={isFiltered ? clear : undefined}
            More={Detail}
          />
        )}
      </Answered>
      <More query={pages} />
    </>
  );
}

function Verify() {
  const verifying = useAction({ mutationFn: verifyAudit });
  return (
    <div className="verify">
      <button type="button" className="button" disabled={verifying.isOff} onClick={() => verifying.mutate()}>
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
        <dt>{t("actor")}</dt>
        <dd><Only name="actor" value={record.actor} /></dd>
      </div>
      <div>
        <dt>{t("action")}</dt>
        <dd><Only name="action" value={record.action} /></dd>
      </div>
      <div>
        <dt>{t("data")}</dt>
        <dd>
          <Value value={record.data} rawNames />
        </dd>
      </div>
      {record.hold ? (
        <div>
          <dt>{t("hold")}</dt>
          <dd>
            <Link to="/inbox/$view/$hold" params={{ view: "all", hold: record.hold }} className="code">
              {record.hold.slice(0, 8)}
            </Link>
          </dd>
        </div>
      ) : null}
      <div>
        <dt>{t("hash")}</dt>
        <dd className="code small">{record.hash}</dd>
      </div>
    </dl>
  );
}
