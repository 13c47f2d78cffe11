"""What is deleted with a run. Each dialect deletes the rows in its own way."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.hold_transitions import RUN_DELETED_REASON
from holdfast.store.sql import outbox
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.side_changes import close_all

# Tables whose keys are the run's key and a number; by the run's key; by the id of a hold.
BY_KEY = ("journal", "events", "projections")
OF_RUN = ("inbox", "timers", "holds", "late_reports", "blob_refs", "deaths")
OF_HOLD = ("hold_notes", "hold_keys", "hold_links", "queue_messages")


async def close_holds(conn: Conn, now: int, run: RunRef, holds: Sequence[str]) -> None:
    """Messages that were not sent yet are dropped. Open holds are closed, so that what was sent about them is
    withdrawn and the audit has an entry."""
    await outbox.drop(conn, run.key, holds)
    if not holds:
        return
    entries = AuditEntries()
    await close_all(conn, now, run, RUN_DELETED_REASON, entries)
    await entries.append(conn)
    await outbox.detach_from_run(conn, holds)
