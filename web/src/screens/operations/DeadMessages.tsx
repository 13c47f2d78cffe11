/** Messages of a queue that were given up, with their errors; each can be replayed or discarded. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRight } from "@/app/useSession";
import { Value } from "@/components/Value";
import { type DeadMessage, MOST_MESSAGES, type Queue, discardMessage, listDeadMessages, replayMessage } from "@/services/operations";
import { word } from "@/words";
import { Action } from "./Action";
import { Answered, type Column, EVERY, None, Table } from "./Panel";
import { t } from "./text";

const COLUMNS: Column<DeadMessage>[] = [
  { label: t("message"), cell: (row) => <span className="code" title={row.id}>{row.id.slice(0, 8)}</span> },
  { label: t("messageType"), cell: (row) => row.type },
  { label: t("run"), cell: (row) => (row.run ? <Link className="code" to="/runs/$run" params={{ run: row.run }}>{row.run.slice(0, 8)}</Link> : <None />) },
  { label: t("attemptsMade"), cell: (row) => row.attempts, isNumber: true },
  { label: t("error"), cell: (row) => (row.error ? <span className="wrapped">{row.error}</span> : <None />) },
  { label: t("content"), cell: (row) => (row.payload === null ? <None /> : <Value value={row.payload} />) },
];

export default function DeadMessages({ row: queue }: { row: Queue }) {
  const mayWrite = useRight("queues:write");
  const messages = useQuery({ queryKey: ["operations", "queues", queue.scope, queue.queue], queryFn: () => listDeadMessages(queue.scope, queue.queue), refetchInterval: EVERY });
  return (
    <Answered query={messages}>
      {(rows) => (
        <div className="evidence">
          <Table
            label={t("deadMessages")}
            rows={rows}
            columns={COLUMNS}
            keyOf={(row) => row.id}
            empty={t("noDeadMessages")}
            hint={t("noDeadMessagesHint")}
            Actions={mayWrite ? Actions : undefined}
          />
          {rows.length === MOST_MESSAGES && queue.dead > rows.length ? <p className="muted small">{t("newestMessages", { count: rows.length })}</p> : null}
        </div>
      )}
    </Answered>
  );
}

function Actions({ row }: { row: DeadMessage }) {
  const name = row.id.slice(0, 8);
  return (
    <>
      <Action label={word("replay")} of={name} title={t("replayMessageTitle", { name })} text={t("replayMessageText")} act={() => replayMessage(row)} done={t("replayMessageDone", { name })} />
      <Action label={word("discard")} of={name} title={t("discardMessageTitle", { name })} text={t("discardMessageText")} isDanger act={() => discardMessage(row)} done={t("discardMessageDone", { name })} />
    </>
  );
}
