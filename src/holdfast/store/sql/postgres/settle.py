"""The hot path: records appended to their runs, fenced by the lease's term (D-6, D-8).

Most batches are plain: they continue the run's journal and change nothing else but its status. All of these
are one statement, which is a transaction by itself: one round trip. Runs that it did not take are handled one
by one in a second transaction, where everything can be checked and answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.store.fence import OWNED_BY_GIVEN
from holdfast.store.sql.postgres.connect import PostgresConnection
from holdfast.store.sql.postgres.listen import channel
from holdfast.telemetry import crashpoint
from holdfast.types.record import Record, RunBatch
from holdfast.types.status import ENDED

JOURNAL = (
    "kind", "at", "term", "node", "visit", "attempt", "scope", "effect", "outcome", "listed", "events",
    "digest", "payload",
)  # fmt: skip
_TYPES = (
    "smallint", "bigint", "bigint", "text", "bigint", "bigint", "text", "text", "text", "boolean", "bigint",
    "bytea", "bytea",
)  # fmt: skip
_PLACE = ("bigint", "bigint", "bigint")
_RECORD = f"AS r (run_key, seq, events_before, {', '.join(JOURNAL)})"
RECORDS = f"unnest({', '.join(f'?::{t}[]' for t in (*_PLACE, *_TYPES))}) {_RECORD}"
"""`events_before`: the number of events of the earlier records of the range."""
_ONE_RECORD = f"(VALUES ({', '.join(f'?::{t}' for t in (*_PLACE, *_TYPES))})) {_RECORD}"
INTO_JOURNAL = f"INSERT INTO @journal (key, event_from, {', '.join(JOURNAL)})"

_RUN = (
    "bigint", "text", "bigint", "text", "bigint", "bigint", "bigint", "text", "text", "boolean", "text",
    "bigint", "bigint",
)  # fmt: skip
_RUNS = f"unnest({', '.join(f'?::{t}[]' for t in _RUN)}) WITH ORDINALITY"
_ONE_RUN = f"(VALUES ({', '.join(f'?::{t}' for t in _RUN)}, 1))"


# One UPDATE decides for each run, by term, worker and head; the rest writes only for the runs that it
# returned. So nothing can change between the check and the write.
def _plain(runs: str, records: str) -> str:
    return f"""
WITH given AS MATERIALIZED (
    SELECT * FROM {runs} AS g (key, run, term, worker, first, last, events, status, error, ended,
                               park, inbox_seen, ready_at, nth)
), moved AS (
    UPDATE @runs AS runs SET
        head = g.last, event_seq = runs.event_seq + g.events, updated_at = @now(?::bigint),
        feed_pos = CASE WHEN g.events > 0 THEN @place(g.nth, runs.feed_pos) ELSE runs.feed_pos END,
        status = CASE WHEN g.park IS NOT NULL AND runs.inbox_seq = g.inbox_seen THEN g.park
                      ELSE coalesce(g.status, runs.status) END,
        error = coalesce(g.error, runs.error),
        ended_at = CASE WHEN g.ended THEN @now(?::bigint) ELSE runs.ended_at END,
        worker = CASE WHEN g.ended OR (g.park IS NOT NULL AND runs.inbox_seq = g.inbox_seen) THEN NULL
                      ELSE runs.worker END,
        lease_until = CASE WHEN g.ended OR (g.park IS NOT NULL AND runs.inbox_seq = g.inbox_seen) THEN NULL
                           ELSE runs.lease_until END,
        ready_at = CASE WHEN g.park IS NOT NULL AND runs.inbox_seq = g.inbox_seen THEN g.ready_at
                        WHEN g.ended THEN NULL ELSE runs.ready_at END
    FROM given AS g
    WHERE {OWNED_BY_GIVEN}
    AND runs.head = g.first - 1
    RETURNING runs.key, runs.event_seq - g.events AS before, g.events, runs.feed_pos,
              g.park IS NOT NULL AND runs.worker IS NULL AS parked,
              runs.worker IS NULL AND runs.gate <> '' AS freed
), written AS (
    {INTO_JOURNAL}
    SELECT moved.key << 32 | r.seq, moved.before + r.events_before + 1,
           {", ".join(f"r.{name}" for name in JOURNAL)}
    FROM {records} JOIN moved ON moved.key = r.run_key
), announced AS (
    INSERT INTO @feed (pos, run_key, first, last)
    SELECT feed_pos, key, before + 1, before + events FROM moved WHERE events > 0
)
-- Wakes workers that wait for a place under the run's limit.
SELECT key, before, parked, CASE WHEN freed THEN pg_notify(?, '')::text END FROM moved"""


_MANY = _plain(_RUNS, RECORDS)
# A single run, step by step: single values are faster on both sides than arrays of one.
_ONE = _plain(_ONE_RUN, _ONE_RECORD)


async def settle_plain(
    conn: PostgresConnection, now: int | None, batches: Sequence[RunBatch]
) -> dict[int, tuple[int, bool]]:
    """By the runs' keys: the number of the last event before the records, and whether the run was released.
    Runs that are not in it were not changed."""
    # In the order of keys, so that two settles wait for each other in one direction only: no deadlock.
    ordered = sorted(batches, key=lambda batch: batch.lease.key)
    runs = [_run_values(batch) for batch in ordered]
    records = [values for batch in ordered for values in record_values(batch.lease.key, batch.records)]
    crashpoint("inside_settle")
    if len(records) == 1:
        found = await conn.rows(_ONE, *runs[0], now, now, *records[0], channel(conn.schema))
    else:
        columns = [list(column) for column in zip(*runs, strict=True)]
        rows = [list(column) for column in zip(*records, strict=True)]
        found = await conn.rows(_MANY, *columns, now, now, *rows, channel(conn.schema))
    return {key: (before, parked) for key, before, parked, _ in found}


def _run_values(batch: RunBatch) -> tuple[Any, ...]:
    lease, park = batch.lease, batch.park
    status = error = None
    for record in batch.records:
        if record.side is not None:
            status = record.side.status or status
            error = error if record.side.error is None else record.side.error
    return (
        lease.key, lease.run, lease.term, lease.worker, batch.first, batch.last,
        sum([r.events for r in batch.records]), status, error, status in ENDED,
        None if park is None else park.status, None if park is None else park.inbox_seen,
        None if park is None else park.ready_at,
    )  # fmt: skip


def record_values(key: int, records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """As RECORDS takes them, transposed."""
    values: list[tuple[Any, ...]] = []
    result = 0
    for r in records:
        values.append(
            (key, r.seq, result, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect,
             r.outcome, r.listed, r.events, r.digest, r.payload)
        )  # fmt: skip
        result += r.events
    return values
