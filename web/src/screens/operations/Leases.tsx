/** Which runs a process has now, and until when: of one worker, or of all. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useSession } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { StatusBadge } from "@/components/StatusBadge";
import { shortVersion } from "@/models/names";
import { type Lease, listLeases } from "@/services/operations";
import { More } from "./More";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { leaseWord } from "./panels";
import { t } from "./text";

const COLUMNS: Column<Lease>[] = [
  { label: t("run"), cell: (row) => <RunOf lease={row} /> },
  { label: t("flow"), cell: (row) => row.flow },
  { label: t("version"), cell: (row) => <span className="code">{shortVersion(row.version)}</span> },
  { label: t("lease"), cell: (row) => <StatusBadge shown={leaseWord(row)} /> },
  { label: t("leaseUntil"), cell: (row) => (row.until ? <Moment at={row.until} seconds /> : <None />) },
  { label: t("claims"), cell: (row) => row.term, isNumber: true },
  { label: t("recoveries"), cell: (row) => row.recoveries, isNumber: true },
];
const WORKER: Column<Lease> = { label: t("worker"), cell: (row) => <span className="code">{row.worker}</span> };

export function Leases({ worker }: { worker?: string }) {
  const leases = useInfiniteQuery({
    queryKey: ["operations", "leases", worker ?? ""],
    queryFn: ({ pageParam }) => listLeases(worker, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: EVERY,
  });
  const label = worker === undefined ? t("leases") : t("leasesOf", { worker });
  return (
    <>
      <Answered query={leases}>
        {({ pages }) => (
          <Table
            label={label}
            rows={pages.flatMap((page) => page.items)}
            columns={worker === undefined ? [...COLUMNS, WORKER] : COLUMNS}
            keyOf={(row) => row.run}
            empty={t("noLeases")}
            hint={t("noLeasesHint")}
          />
        )}
      </Answered>
      <More query={leases} />
    </>
  );
}

/** A run of another tenant cannot be opened here. */
function RunOf({ lease }: { lease: Lease }) {
  const { tenant } = useSession();
  const name = <span className="code">{lease.run.slice(0, 8)}</span>;
  if (lease.tenant !== tenant) return <>{name} <span className="muted">{lease.tenant}</span></>;
  return <Link to="/runs/$run" params={{ run: lease.run }}>{name}</Link>;
}
