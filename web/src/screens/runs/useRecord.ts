/** The record that all parts of a run's page show, from the address. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { PASSING } from "@/app/query";
import { type JournalRecord, type Records, RECORDS, pageOf, recordAt } from "@/models/records";
import { type Point, type TimelineVisit, visitOfRecord } from "@/models/timeline";
import { listRecords } from "@/services/runHistory";

export type ShownRecord = {
  /** The record in the address; undefined: the latest. */
  at: number | undefined;
  number: number;
  /** Where it stands; null: the latest, as the run is now. */
  point: Point | null;
  /** What it is; null: not read yet. */
  record: JournalRecord | null;
  go: (record: number) => void;
};

export function useRecord(run: string, records: Records, visits: readonly TimelineVisit[]): ShownRecord {
  const { at } = useSearch({ strict: false });
  const navigate = useNavigate();
  const number = recordAt(records, at);
  const page = pageOf(number);
  // A page that is full does not change.
  const version = page + RECORDS > records.last ? records.last : 0;
  const found = useQuery({ queryKey: ["records", run, page, version], queryFn: () => listRecords(run, page), staleTime: Number.POSITIVE_INFINITY, gcTime: PASSING, placeholderData: keepPreviousData });
  const record = found.data?.find((each) => each.seq === number) ?? null;
  const go = (next: number) => {
    const wanted = recordAt(records, next);
    void navigate({
      to: "/runs/$run", params: { run }, replace: true, resetScroll: false,
      search: (old: object) => ({ ...old, at: wanted === records.last ? undefined : wanted, step: undefined }),
    });
  };
  const near = visitOfRecord(visits, number, "");
  const point = at === undefined ? null : { seq: number, at: record?.at ?? near?.endedAt ?? near?.startedAt ?? visits[0]?.startedAt ?? "" };
  return { at, number, point, record, go };
}
