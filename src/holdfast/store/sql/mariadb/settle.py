"""The hot path: records that only follow their run's head, of any number of runs, in one round trip and one
commit (D-6, D-8)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.dialect import APPEND, record_values
from holdfast.store.sql.mariadb.statement import literal, statement
from holdfast.telemetry import crashpoint
from holdfast.types.record import RunBatch
from holdfast.types.status import ENDED

# Each run: an UPDATE decides by term, worker and head; the rest is written only if it changed the row. So
# nothing can change between the check and the write.
_MOVE = f"""
UPDATE @runs SET head = ?, event_seq = event_seq + ?, updated_at = @now(?::bigint){{also}}
WHERE {OWNED} AND head = ?"""
_PARK = """, status = CASE WHEN inbox_seq = ? THEN ? ELSE status END,
    worker = CASE WHEN inbox_seq = ? THEN NULL ELSE worker END,
    lease_until = CASE WHEN inbox_seq = ? THEN NULL ELSE lease_until END,
    ready_at = CASE WHEN inbox_seq = ? THEN ? ELSE ready_at END"""
_END = ", status = ?, ended_at = @now(?::bigint), worker = NULL, lease_until = NULL, ready_at = NULL"
_RUN = """
{move};
IF ROW_COUNT() = 1 THEN
    SELECT event_seq - {events}, worker IS NULL INTO b{nth}, p{nth} FROM runs WHERE `key` = {key};
    {append};{announced}
END IF;"""
_ANNOUNCED = """
    INSERT INTO feed_head (one, pos) VALUES (1, LAST_INSERT_ID(1))
    ON DUPLICATE KEY UPDATE pos = LAST_INSERT_ID(pos + 1);
    INSERT INTO feed (pos, run_key, first, last)
    VALUES (LAST_INSERT_ID(), {key}, b{nth} + 1, b{nth} + {events});"""
_INTO = statement(APPEND).parts[0].rpartition("(")[0]
_WHOLE = """BEGIN NOT ATOMIC
DECLARE {befores} bigint;
DECLARE {parked} boolean;
DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
START TRANSACTION;
{runs}
COMMIT;
SELECT {befores}, {parked};
END"""


async def settle_plain(
    conn: MariadbConnection, now: int | None, batches: Sequence[RunBatch]
) -> dict[int, tuple[int, bool]]:
    """By the runs' keys: the number of the last event before the records, and whether the run was released.
    Runs that are not in it were not changed."""
    # In the order of keys, so that two settles wait for each other in one direction only: no deadlock.
    ordered = sorted(batches, key=lambda batch: batch.lease.key)
    places = range(len(ordered))
    text = _WHOLE.format(
        befores=", ".join(f"b{nth}" for nth in places),
        parked=", ".join(f"p{nth}" for nth in places),
        runs="".join(_run(nth, now, batch) for nth, batch in enumerate(ordered)),
    )
    crashpoint("inside_settle")
    ((*found,),) = await conn.send_rows(text)
    befores, parked = found[: len(ordered)], found[len(ordered) :]
    return {
        batch.lease.key: (befores[nth], bool(parked[nth]) and batch.park is not None)
        for nth, batch in enumerate(ordered)
        if befores[nth] is not None
    }


def _run(nth: int, now: int | None, batch: RunBatch) -> str:
    key, events = batch.lease.key, sum([r.events for r in batch.records])
    return _RUN.format(
        move=_move(now, batch, events),
        events=events,
        nth=nth,
        key=key,
        append=_append(nth, batch),
        announced=_ANNOUNCED.format(key=key, nth=nth, events=events) if events else "",
    )


def _move(now: int | None, batch: RunBatch, events: int) -> str:
    also, given = "", list[object]()
    for record in batch.records:
        side = record.side
        if side is None:
            continue
        if side.error is not None:
            also, given = f"{also}, error = ?", [*given, side.error]
        if side.status in ENDED:
            also, given = also + _END, [*given, side.status, now]
        elif side.status is not None:
            also, given = f"{also}, status = ?", [*given, side.status]
    park = batch.park
    if park is not None:
        seen = park.inbox_seen
        also, given = also + _PARK, [*given, seen, park.status, seen, seen, seen, park.ready_at]
    fence = (*lease_values(batch.lease), batch.first - 1)
    return statement(_MOVE.format(also=also)).filled((batch.last, events, now, *given, *fence))


def _append(nth: int, batch: RunBatch) -> str:
    """Events are numbered after what the row says."""
    rows = [
        f"({key}, b{nth} + {number}, {', '.join(map(literal, rest))})"
        for key, number, *rest in record_values(batch.lease.key, batch.records, 0)
    ]
    return _INTO + ", ".join(rows)
