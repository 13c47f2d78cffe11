import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useRight } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { shortVersion } from "@/models/names";
import { withShortTimes } from "@/models/time";
import { type DeadRun, type Death, discardDeadRun, listDeadRuns, listDeaths, retryDeadRun } from "@/services/operations";
import { MOST_BULK, changeMany } from "@/services/runs";
import { word } from "@/words";
import { Action } from "./Action";
import { BulkAct, type ManyAction } from "./BulkAct";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { t } from "./text";

const COLUMNS: Column<DeadRun>[] = [
  { label: t("run"), cell: (row) => <span className="code">{row.id.slice(0, 8)}</span> },
  { label: t("flow"), cell: (row) => row.flow },
  { label: t("version"), cell: (row) => <span className="code" title={row.version}>{shortVersion(row.version)}</span> },
  { label: t("givenUp"), cell: (row) => (row.endedAt ? <Moment at={row.endedAt} /> : <None />) },
  { label: t("error"), cell: (row) => (row.error ? <span className="wrapped">{withShortTimes(row.error, new Date())}</span> : <None />) },
];

const DEATHS: Column<Death>[] = [
  { label: t("worker"), cell: (row) => <span className="code">{row.worker}</span> },
  { label: t("died"), cell: (row) => (row.at ? <Moment at={row.at} /> : <None />) },
  { label: t("afterRecord"), cell: (row) => row.record, isNumber: true },
  { label: t("nodes"), cell: (row) => (row.nodes.length > 0 ? row.nodes.join(", ") : row.unknown || <None />) },
];

/** Both for one and for many: the server says first what would happen to each. */
const ACTIONS: ManyAction[] = [
  many(word("retryRun"), "retry"),
  { ...many(word("discard"), "discard"), isDanger: true, asksReason: true },
];

function many(label: string, action: "retry" | "discard"): ManyAction {
  const change = async (ids: string[], preview: boolean, reason: string) =>
    (await changeMany(ids, action, preview, reason)).map((each) => ({ id: each.run, done: each.done, texts: each.done ? each.texts : [each.why] }));
  return { label, preview: (ids) => change(ids, true, ""), act: (ids, reason) => change(ids, false, reason) };
}

export function DeadLetters() {
  const mayWrite = useRight("runs:write");
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const runs = useQuery({ queryKey: ["operations", "dead"], queryFn: listDeadRuns, refetchInterval: EVERY });
  return (
    <Answered query={runs}>
      {(rows) => (
        <>
          {mayWrite ? <BulkAct titleOf={(label, count) => t("manyDead", { label, count })} ids={rows.map((each) => each.id).filter((each) => chosen.has(each))} most={MOST_BULK} actions={ACTIONS} onLeave={(left) => setChosen(new Set(left))} /> : null}
          <Table
            choice={mayWrite ? { chosen, onChoose: setChosen, nameOf: (row) => row.id.slice(0, 8) } : undefined}
            label={t("dead")}
            rows={rows}
            columns={COLUMNS}
            keyOf={(row) => row.id}
            empty={t("noDead")}
            hint={t("noDeadHint")}
            Actions={mayWrite ? Actions : undefined}
            More={Evidence}
          />
        </>
      )}
    </Answered>
  );
}

function Actions({ row: run }: { row: DeadRun }) {
  const name = run.id.slice(0, 8);
  return (
    <>
      <Action
        label={word("retryRun")}
        of={name}
        title={t("retryTitle", { name })}
        text={t("retryText")}
        act={() => retryDeadRun(run.id)}
        done={t("retryDone", { name })}
      />
      <Action
        label={word("discard")}
        of={name}
        title={t("discardTitle", { name })}
        text={t("discardText")}
        isDanger
        asksReason
        act={(reason) => discardDeadRun(run.id, reason)}
        done={t("discardDone", { name })}
      />
    </>
  );
}

function Evidence({ row: run }: { row: DeadRun }) {
  const deaths = useQuery({ queryKey: ["operations", "dead", run.id], queryFn: () => listDeaths(run.id) });
  return (
    <div className="evidence">
      <Answered query={deaths}>
        {(rows) => <Table label={t("deaths")} rows={rows} columns={DEATHS} keyOf={(row) => `${row.at} ${row.worker} ${row.record}`} empty={t("noDeaths")} hint={t("noDeathsHint")} />}
      </Answered>
      <Link to="/runs/$run" params={{ run: run.id }}>
        {t("openRun")}
      </Link>
    </div>
  );
}
