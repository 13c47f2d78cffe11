import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Moment } from "@/components/Moment";
import { type DeadNotice, getFigures, listDeadNotices, replayNotice } from "@/services/operations";
import { word } from "@/words";
import { Action } from "./Action";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { t } from "./text";

const COLUMNS: Column<DeadNotice>[] = [
  { label: t("topic"), cell: (row) => row.topic },
  { label: t("failedAt"), cell: (row) => (row.at ? <Moment at={row.at} /> : <None />) },
  { label: t("hold"), cell: (row) => <HoldLink id={row.hold} /> },
  { label: t("attempts"), cell: (row) => row.attempts, isNumber: true },
  { label: t("error"), cell: (row) => (row.error ? <span className="wrapped">{row.error}</span> : <None />) },
];

function HoldLink({ id }: { id: string | null }) {
  if (id === null) return <None />;
  return (
    <Link to="/inbox/$view/$hold" params={{ view: "all", hold: id }} className="code">
      {id.slice(0, 8)}
    </Link>
  );
}

function Replay({ row }: { row: DeadNotice }) {
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
  const mayCount = useRight("admin:manage");
  const notices = useQuery({ queryKey: ["operations", "notices"], queryFn: listDeadNotices, refetchInterval: EVERY });
  const figures = useQuery({ queryKey: ["operations", "figures"], queryFn: getFigures, enabled: mayCount, refetchInterval: EVERY });
  return (
    <>
      {figures.data ? (
        <p className="muted">{t("noticeCounts", { waiting: figures.data.noticesWaiting, dead: figures.data.noticesDead })}</p>
      ) : null}
      <Answered query={notices}>
        {(rows) => (
          <Table
            label={t("notifications")}
            rows={rows}
            columns={COLUMNS}
            keyOf={(row) => String(row.id)}
            empty={t("noNotices")}
            hint={t("noNoticesHint")}
            Actions={Replay}
          />
        )}
      </Answered>
    </>
  );
}
