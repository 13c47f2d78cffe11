import { useQuery } from "@tanstack/react-query";
import { Suspense, lazy } from "react";
import { Skeleton } from "@/components/Skeleton";
import { duration } from "@/models/time";
import { type Queue, listQueues } from "@/services/operations";
import { Answered, Bar, type Column, EVERY, None, Table } from "./Panel";
import { shareOf } from "./panels";
import { t } from "./text";

const DeadMessages = lazy(() => import("./DeadMessages"));

function Opened({ row }: { row: Queue }) {
  return (
    <Suspense fallback={<Skeleton rows={2} />}>
      <DeadMessages row={row} />
    </Suspense>
  );
}

function columns(queues: Queue[]): Column<Queue>[] {
  const largest = Math.max(...queues.map((each) => each.ready));
  return [
    { label: t("queue"), cell: (row) => row.queue },
    { label: t("scope"), cell: (row) => <span className="code">{row.scope}</span> },
    { label: t("ready"), cell: (row) => <Bar value={row.ready} share={shareOf(row.ready, largest)} /> },
    { label: t("delayed"), cell: (row) => row.delayed, isNumber: true },
    { label: t("claimed"), cell: (row) => row.claimed, isNumber: true },
    { label: t("givenUp"), cell: (row) => row.dead, isNumber: true },
    { label: t("oldest"), cell: (row) => (row.oldestSeconds > 0 ? duration(row.oldestSeconds * 1000) : <None />), isNumber: true },
  ];
}

export function Queues() {
  const queues = useQuery({ queryKey: ["operations", "queues"], queryFn: listQueues, refetchInterval: EVERY });
  return (
    <Answered query={queues}>
      {(rows) => (
        <Table
          label={t("queues")}
          rows={rows}
          columns={columns(rows)}
          keyOf={(row) => `${row.scope} ${row.queue}`}
          empty={t("noQueues")}
          hint={t("noQueuesHint")}
          More={Opened}
        />
      )}
    </Answered>
  );
}
