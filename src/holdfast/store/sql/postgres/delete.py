"""Deletes a run with everything that belongs to it. Retention deletes thousands: few round trips for each."""

from __future__ import annotations

from typing import Any

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.delete import BY_KEY, OF_HOLD, OF_RUN, close_holds
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.postgres.connect import PostgresConnection as DriverConn
from holdfast.store.sql.postgres.connect import statement
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED

_FIND = """
SELECT key, lease_until, status, tenant, ARRAY(
    SELECT holds.id FROM @holds AS holds WHERE holds.run_key = runs.key ORDER BY holds.number)
FROM @runs AS runs WHERE id = ? FOR UPDATE"""
_DELETE = (
    "WITH "
    + ", ".join(
        [
            *(f"of_{name} AS (DELETE FROM @{name} WHERE key BETWEEN ? AND ?)" for name in BY_KEY),
            *(f"of_{name} AS (DELETE FROM @{name} WHERE run_key = ?)" for name in OF_RUN),
            *(f"of_{name} AS (DELETE FROM @{name} WHERE hold = ANY(?::text[]))" for name in OF_HOLD),
        ]
    )
    + " DELETE FROM @runs WHERE key = ?"
)


_VACUUM = "VACUUM (TRUNCATE false, SKIP_LOCKED) " + ", ".join(
    f"@{name}" for name in (*BY_KEY, *OF_RUN, *OF_HOLD, "runs", "blobs", "feed", "outbox")
)
_LONGEST = 600.0  # seconds


async def vacuum(conn: DriverConn) -> None:
    """Deleted rows keep their space until a vacuum, and the server's autovacuum runs at its own
    times. No file is truncated, because that would lock others out. Tables that are being vacuumed
    already are skipped."""
    raw: Any = conn.raw
    await raw.execute(statement(_VACUUM, conn.schema), timeout=_LONGEST)


async def delete(conn: Conn, now: int, run: RunId, ended: bool) -> bool:
    found = await conn.row(_FIND, run)
    if found is None or (found[1] is not None and found[1] > now) or (ended and found[2] not in ENDED):
        return False
    key, holds = found[0], found[4]
    await close_holds(conn, now, RunRef(key, run, found[3]), holds)
    records = (key << 32, key << 32 | 0xFFFF_FFFF)
    await conn.run(_DELETE, *records * len(BY_KEY), *[key] * len(OF_RUN), *[holds] * len(OF_HOLD), key)
    return True
