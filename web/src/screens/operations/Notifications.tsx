/** Notifications by their state, newest first. The state is in the address. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { type NoticeState, type StoredNotice, listNotices, replayNotice } from "@/services/operations";
import { word } from "@/words";
import { Action } from "./Action";
import { More } from "./More";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { NOTICES, noticeStateOf } from "./notices";
import { t } from "./text";

const COLUMNS: Column<StoredNotice>[] = [
  { label: t("topic"), cell: (row) => row.topic },
  { label: t("created"), cell: (row) => (row.at ? <Moment at={row.at} /> : <None />) },
  { label: t("hold"), cell: (row) => <HoldLink id={row.hold} /> },
  { label: t("attempts"), cell: (row) => row.attempts, isNumber: true },
];
const DUE: Column<StoredNotice> = { label: t("nextAttempt"), cell: (row) => (row.dueAt ? <Moment at={row.dueAt} /> : <None />) };
const ERROR: Column<StoredNotice> = {
  label: t("error"),
  cell: (row) => (row.error ? <span className="wrapped">{row.error}</span> : <None />),
};
const SHOWN: Record<NoticeState, Column<StoredNotice>[]> = {
  waiting: [...COLUMNS, DUE, ERROR],
  sent: COLUMNS,
  failed: [...COLUMNS, ERROR],
  unneeded: COLUMNS,
};

function HoldLink({ id }: { id: string | null }) {
  if (id === null) return <None />;
  return (
    <Link to="/inbox/$view/$hold" params={{ view: "all", hold: id }} className="code">
      {id.slice(0, 8)}
    </Link>
  );
}

function Replay({ row }: { row: StoredNotice }) {
  return (
    <Action
      label={word("replay")}
      of={row.topic}
      title={t("replayTitle")}
      text={t("replayText")}
      act={() => replayNotice(row.id)}
      done={t("replayDone")}
    />
  );
}

export function Notifications() {
  const state = noticeStateOf(useSearch({ strict: false }).state);
  const pages = useInfiniteQuery({
    queryKey: ["operations", "notices", state],
    queryFn: ({ pageParam }) => listNotices(state, pageParam),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next,
    refetchInterval: EVERY,
  });
  return (
    <>
      <States state={state} />
      <Answered query={pages}>
        {(data) => (
          <Table
            label={t("notifications")}
            rows={data.pages.flatMap((page) => page.items)}
            columns={SHOWN[state]}
            keyOf={(row) => String(row.id)}
            empty={NOTICES[state].empty}
            hint={NOTICES[state].hint}
            Actions={state === "failed" ? Replay : undefined}
          />
        )}
      </Answered>
      <More query={pages} />
    </>
  );
}

function States({ state }: { state: NoticeState }) {
  return (
    <nav className="choices" aria-label={t("state")}>
      {(Object.keys(NOTICES) as NoticeState[]).map((name) => (
        <Link
          key={name}
          to="/operations/$panel"
          params={{ panel: "notifications" }}
          search={{ state: name }}
          aria-current={name === state ? "true" : undefined}
        >
          {NOTICES[name].label}
        </Link>
      ))}
    </nav>
  );
}
