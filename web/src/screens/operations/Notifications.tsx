/** Notifications by their state, newest first. The state is in the address. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { Moment } from "@/components/Moment";
import { useState } from "react";
import type { Outcome } from "@/models/selection";
import { MOST_REPLAYED, type NoticeState, type StoredNotice, listNotices, replayMany, replayNotice } from "@/services/operations";
import { word } from "@/words";
import { Action } from "./Action";
import { BulkAct, type ManyAction } from "./BulkAct";
import { More } from "./More";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { NOTICES, noticeStateOf, topicWord } from "./notices";
import { t } from "./text";

const COLUMNS: Column<StoredNotice>[] = [
  { label: t("topic"), cell: (row) => topicWord(row.topic) },
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
      of={topicWord(row.topic)}
      title={t("replayTitle")}
      text={t("replayText")}
      act={() => replayNotice(row.id)}
      done={t("replayDone")}
    />
  );
}

const ACTIONS: ManyAction[] = [
  { label: word("replay"), preview: (ids) => replay(ids, true), act: (ids) => replay(ids, false) },
];

async function replay(ids: string[], preview: boolean): Promise<Outcome[]> {
  return (await replayMany(ids.map(Number), preview)).map((each) => ({ id: String(each.id), done: each.done, texts: [each.text] }));
}

export function Notifications() {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
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
          <>
            {state === "failed" ? <BulkAct titleOf={(label, count) => t("manyNotices", { label, count })} ids={rowsOf(data).map((each) => String(each.id)).filter((each) => chosen.has(each))} most={MOST_REPLAYED} actions={ACTIONS} onLeave={(left) => setChosen(new Set(left))} /> : null}
            <Table
              label={t("notifications")}
              rows={rowsOf(data)}
              choice={state === "failed" ? { chosen, onChoose: setChosen, nameOf: (row) => `${topicWord(row.topic)} ${row.hold?.slice(0, 8) ?? row.id}` } : undefined}
              columns={SHOWN[state]}
              keyOf={(row) => String(row.id)}
              empty={NOTICES[state].empty}
              hint={NOTICES[state].hint}
              Actions={state === "failed" ? Replay : undefined}
            />
          </>
        )}
      </Answered>
      <More query={pages} />
    </>
  );
}

function rowsOf(data: { pages: { items: StoredNotice[] }[] }): StoredNotice[] {
  return data.pages.flatMap((page) => page.items);
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
