"""Whole runs go, with all that belongs to them. Retention does this to thousands: few round trips each."""

from __future__ import annotations

from typing import Any

from holdfast.store.hold_rules import RUN_DELETED_REASON
from holdfast.store.sql.postgres import outbox
from holdfast.store.sql.postgres.audit import AuditEntries
from holdfast.store.sql.postgres.connect import Conn, statement
from holdfast.store.sql.postgres.run_holds import PostgresRunRef
from holdfast.store.sql.postgres.side import close_all
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED

_BY_KEY = ("journal", "events", "projections")
_OF_RUN = ("inbox", "timers", "holds", "late_reports", "blob_refs", "deaths")
_OF_HOLD = ("hold_notes", "hold_keys", "hold_links")

_FIND = """
SELECT key, lease_until, status, tenant, ARRAY(
    SELECT holds.id FROM @holds AS holds WHERE holds.run_key = runs.key ORDER BY holds.number)
FROM @runs AS runs WHERE id = ? FOR UPDATE"""
_DELETE = (
    "WITH "
    + ", ".join(
        [
            *(f"of_{name} AS (DELETE FROM @{name} WHERE key BETWEEN ? AND ?)" for name in _BY_KEY),
            *(f"of_{name} AS (DELETE FROM @{name} WHERE run_key = ?)" for name in _OF_RUN),
            *(f"of_{name} AS (DELETE FROM @{name} WHERE hold = ANY(?::text[]))" for name in _OF_HOLD),
        ]
    )
    + " DELETE FROM @runs WHERE key = ?"
)


_VACUUM = "VACUUM (TRUNCATE false, SKIP_LOCKED) " + ", ".join(
    f"@{name}" for name in (*_BY_KEY, *_OF_RUN, *_OF_HOLD, "runs", "blobs", "feed", "outbox")
)
_LONGEST = 600.0  # seconds


async def vacuum(conn: Conn) -> None:
    """A deleted row keeps its room until somebody vacuums, and the server's own workers come by their clock.
    No file becomes shorter: that would lock others out. Tables that somebody else vacuums are passed over."""
    raw: Any = conn.raw
    await raw.execute(statement(_VACUUM, conn.schema), timeout=_LONGEST)


async def delete(conn: Conn, now: int, run: RunId, ended: bool) -> bool:
    found = await conn.row(_FIND, run)
    if found is None or (found[1] is not None and found[1] > now) or (ended and found[2] not in ENDED):
        return False
    key, holds = found[0], found[4]
    await outbox.drop(conn, key, holds)
    if holds:
        await _close_holds(conn, now, PostgresRunRef(key, run, found[3]), holds)
    records = (key << 32, key << 32 | 0xFFFF_FFFF)
    await conn.run(_DELETE, *records * len(_BY_KEY), *[key] * len(_OF_RUN), *[holds] * len(_OF_HOLD), key)
    return True


async def _close_holds(conn: Conn, now: int, run: PostgresRunRef, holds: list[str]) -> None:
    """Those still open are closed first: what was sent about them is to be withdrawn, and the audit says so.
    Of what was to be told before, nothing is left to tell."""
    entries = AuditEntries()
    await close_all(conn, now, run, RUN_DELETED_REASON, entries)
    await entries.append(conn)
    await outbox.detach_from_run(conn, holds)
