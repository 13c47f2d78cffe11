"""What PostgreSQL writes for a settle that has side effects (`store.sql.settle`)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.fence import OWNED, lease_values
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.postgres.settle import INTO_JOURNAL, JOURNAL, RECORDS, record_values
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record

_APPEND = f"""
{INTO_JOURNAL}
SELECT r.run_key << 32 | r.seq, ?::bigint + r.events_before, {", ".join(f"r.{name}" for name in JOURNAL)}
FROM {RECORDS}"""
ADVANCE = """
WITH moved AS (
    UPDATE @runs SET head = ?, event_seq = ?, updated_at = ?,
                     feed_pos = CASE WHEN ?::boolean THEN @place(?, feed_pos) ELSE feed_pos END
    WHERE key = ? RETURNING key, feed_pos)
INSERT INTO @feed (pos, run_key, first, last)
SELECT feed_pos, key, ?::bigint, ?::bigint FROM moved WHERE ?::boolean"""
_PARK = f"""
UPDATE @runs SET status = ?, ready_at = ?, worker = NULL, lease_until = NULL, updated_at = ?
WHERE {OWNED} AND inbox_seq = ? RETURNING gate"""


async def park(conn: Conn, now: int, lease: Lease, how: Park) -> bool:
    """Releases the run, unless a message arrived for it meanwhile (D-29)."""
    fenced = (*lease_values(lease), how.inbox_seen)
    parked = await conn.row(_PARK, how.status, how.ready_at, now, *fenced)
    if parked is not None and parked[0]:
        await conn.notify()
    return parked is not None


async def append(conn: Conn, now: int, nth: int, key: int, records: Sequence[Record], last: int) -> None:
    """Writes journal rows, their row in the feed, and the run's row. Events are numbered after `last`."""
    await write_records(conn, key, records, last)
    events = sum([r.events for r in records])
    announced = events > 0
    await conn.run(
        ADVANCE, records[-1].seq, last + events, now, announced, nth, key, last + 1, last + events, announced
    )  # fmt: skip


async def write_records(conn: Conn, key: int, records: Sequence[Record], last: int) -> None:
    columns = [list(column) for column in zip(*record_values(key, records), strict=True)]
    await conn.run(_APPEND, last + 1, *columns)
