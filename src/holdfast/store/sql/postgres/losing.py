"""Runs whose history went back: found among many at once, and stopped one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.store.lost_history import LOST_EVENT, loss_event, loss_message
from holdfast.store.protocols import RunRow
from holdfast.store.sql.postgres.connect import Conn
from holdfast.store.sql.postgres.inbox import add_events
from holdfast.store.sql.postgres.runs import COLUMNS, run_row
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.ids import RunId
from holdfast.types.status import ENDED, PARKED, RunStatus

# A record below or at the horizon was pruned or rewritten: nothing can be said of it.
_BEHIND = """
FROM unnest(?::text[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[], ?::bigint[])
    WITH ORDINALITY AS known (run, head, term, at, mail, hold, version, nth)
LEFT JOIN @runs AS runs ON runs.id = known.run
LEFT JOIN @holds AS holds ON holds.id = known.hold
WHERE runs.id IS NULL OR NOT runs.read_only AND (
    runs.inbox_seq < known.mail
    OR known.hold IS NOT NULL AND coalesce(holds.version, 0) < known.version
    OR known.head > runs.horizon AND NOT EXISTS (
        SELECT 1 FROM @journal AS journal WHERE journal.key = runs.key << 32 | known.head
        AND journal.term = known.term AND journal.at = known.at))"""
_FIND = f"SELECT known.nth, runs.id IS NULL {_BEHIND} ORDER BY known.nth"
_LOCK = "SELECT key, head, status, @now(?::bigint) FROM @runs WHERE id = ? AND NOT read_only FOR UPDATE"
_SAID = "SELECT 1 FROM @events WHERE key BETWEEN ? AND ? AND type = ? AND at >= ? LIMIT 1"
# No run that waits may fail: it is taken up for that.
_WAKE = "UPDATE @runs SET status = 'running' WHERE key = ?"
_STOP = """
UPDATE @runs SET status = ?, error = ?, ended_at = coalesce(ended_at, ?::bigint), worker = NULL,
                 lease_until = NULL, ready_at = NULL, updated_at = ?::bigint,
                 term = greatest(term, ?::bigint) + 1, event_seq = greatest(event_seq, ?::bigint)
WHERE key = ?"""
_FENCE = """
UPDATE @runs AS runs SET term = known.term + 1 FROM unnest(?::text[], ?::bigint[]) AS known (run, term)
WHERE runs.id = known.run AND runs.term < known.term"""
_STOPPED = f"SELECT {COLUMNS} FROM @runs WHERE key = ?"


async def find_lost(conn: Conn, known: Sequence[AcknowledgedState]) -> list[tuple[AcknowledgedState, bool]]:
    """Those that the store does not have; True: not even the run."""
    columns = ("run", "head", "term", "at", "mail", "hold", "version")
    values = [[getattr(each, name) for each in known] for name in columns]
    return [(known[nth - 1], gone) for nth, gone in await conn.rows(_FIND, *values)]


async def stop_lost_run(conn: Conn, now: int | None, known: AcknowledgedState) -> RunRow | None:
    """See `Store.lost_history`."""
    found = await conn.row(_LOCK, now, known.run)
    if found is None or not await find_lost(conn, [known]):
        return None
    key, head, status, at = found
    base = key << 32
    if await conn.row(_SAID, base, base | 0xFFFFFFFF, LOST_EVENT, known.at) is not None:
        return None
    if status in PARKED:
        await conn.run(_WAKE, key)
    ends = status if status in ENDED else RunStatus.failed
    error = loss_message(known, head)
    await conn.run(_STOP, ends, error, at, at, known.term, known.events, key)
    await add_events(conn, key, [loss_event(known, head, at)])
    stopped = await conn.row(_STOPPED, key)
    return None if stopped is None else run_row(stopped)


async def fence(conn: Conn, terms: Mapping[RunId, int]) -> None:
    """Where a claim was lost: whoever had it must not be mistaken for who takes that term next."""
    await conn.run(_FENCE, list(terms), list(terms.values()))
