"""What is sent to a run: messages, fired timers, late evidence (D-17, D-29, D-30)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.concurrency_limits import OCCUPIED
from holdfast.store.sql.connection import Conn
from holdfast.types.concurrency_limits import is_entity, root_of
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import InboxRow
from holdfast.types.status import ENDED, RunStatus

_TO = "SELECT key, status, superseded_by, dead FROM @runs WHERE id = ? AND NOT read_only FOR UPDATE"
_OF_ENTITY = """
SELECT gate, instance_key, tenant, deployment FROM @runs WHERE id = ? AND status = 'failed' AND gate <> ''"""
_PUT = "INSERT INTO @inbox (run_key, kind, at, dedupe, payload) VALUES (?, ?, ?, ?, ?)"
# The row, the run's inbox_seq and its ready time change together: otherwise a park could miss the message
# (D-29).
# The earlier time wins: a run that waits after the death of its worker is claimable at once when a message
# arrives.
_WOKEN = """inbox_seq = inbox_seq + 1, updated_at = ?::bigint,
    ready_at = CASE WHEN worker IS NULL AND status NOT IN ('completed', 'failed', 'cancelled')
                    THEN least(coalesce(ready_at, ?::bigint), ?::bigint) ELSE ready_at END"""
_WAKE = f"UPDATE @runs SET {_WOKEN} WHERE key = ?"
# An operator asked to resume it: the limit on recoveries counts from zero again.
REVIVE = """
UPDATE @runs SET status = 'resumable', ended_at = NULL, error = NULL, recoveries = 0, dead = false
WHERE key = ?"""
# Cancelling needs no place under a limit.
LEAVE_QUEUE = "UPDATE @runs SET gate = '' WHERE key = ? AND worker IS NULL AND gate <> ''"
_ADD_EVENT = "INSERT INTO @events (key, at, type, payload) VALUES (?, ?, ?, ?)"
_KNOWN = "SELECT 1 FROM @inbox WHERE run_key = ? AND dedupe = ?"
_PENDING = """
SELECT runs.inbox_seq, inbox.id, inbox.kind, inbox.at, inbox.payload
FROM @runs AS runs LEFT JOIN @inbox AS inbox ON inbox.run_key = runs.key AND NOT inbox.done
WHERE runs.id = ? ORDER BY inbox.id"""
# The run before its timer, as a settle does it: otherwise the two could wait for each other.
_DUE_RUNS = """
SELECT DISTINCT due.run_key FROM (
    SELECT timers.run_key, timers.fire_at FROM @timers AS timers
    LEFT JOIN @runs AS runs ON runs.key = timers.run_key
    WHERE timers.fire_at <= ? AND (?::text IS NULL OR runs.id = ?::text)
    ORDER BY timers.fire_at LIMIT ?) AS due ORDER BY due.run_key"""
# A run that is being settled is skipped: the next sweep fires its timer, and no sweep waits for a settle.
_LOCK = """
SELECT key, status FROM @runs WHERE key = ANY(?::bigint[]) ORDER BY key FOR UPDATE SKIP LOCKED"""
FIRED = """
DELETE FROM @timers WHERE (run_key, token) IN (
    SELECT run_key, token FROM @timers WHERE run_key = ANY(?::bigint[]) AND fire_at <= ?
    ORDER BY fire_at LIMIT ?)
RETURNING run_key, token, fire_at"""
_ORPHANS = """
DELETE FROM @timers AS timers WHERE fire_at <= ?
AND NOT EXISTS (SELECT 1 FROM @runs AS runs WHERE runs.key = timers.run_key)"""
_WAKE_TIMES = """
SELECT runs.id, min(timers.fire_at) FROM @timers AS timers JOIN @runs AS runs ON runs.key = timers.run_key
WHERE runs.id = ANY(?::text[]) GROUP BY runs.id"""
# In order, so that the index is read: PostgreSQL takes a third of all timers to be due where it does not know
# the instant, and would read the whole table for the first of them.
_ANY_DUE = "SELECT 1 FROM @timers WHERE fire_at <= ? ORDER BY fire_at LIMIT 1"
_REPORT = """
INSERT INTO @late_reports (run_key, seq, payload)
SELECT key, ?::bigint, ?::bytea FROM @runs AS runs WHERE id = ? AND NOT EXISTS (
    SELECT 1 FROM @late_reports WHERE run_key = runs.key AND seq = ?::bigint AND payload = ?::bytea)"""
_REPORTS = """
SELECT seq, payload FROM @late_reports WHERE run_key = (SELECT key FROM @runs WHERE id = ?) ORDER BY number"""


async def send(
    conn: Conn,
    now: int,
    run: RunId,
    kind: str,
    payload: bytes,
    dedupe: str | None,
    event: EventRow | None,
) -> bool:
    if kind == "resume" and not await lets_resume(conn, now, run):
        return False
    found = await conn.row(_TO, run)
    if found is None:
        return False
    key, status, superseded_by, dead = found
    heard = kind == "resume" or (kind == "cancel" and dead)
    resumes = status == RunStatus.failed and heard and superseded_by is None
    # Refused, so that the sender learns it: a message to an ended run would be acknowledged and never read.
    if (status in ENDED and not resumes) or await _is_known(conn, key, dedupe):
        return False
    if resumes:
        await conn.run(REVIVE, key)
    if kind == "cancel":
        await conn.run(LEAVE_QUEUE, key)
    await put(conn, now, key, kind, payload, dedupe)
    if event is not None:
        await add_events(conn, key, [event])
    return True


async def lets_resume(conn: Conn, now: int, run: RunId) -> bool:
    """Whether no other run of the entity of a failed run is live. Its limit is locked first, as a claim does
    it: of two runs that become live at once, the second sees the first."""
    found = await conn.row(_OF_ENTITY, run)
    if found is None or not is_entity(found[0]):
        return True
    limit, *entity = found
    await conn.load_admission(now, [root_of(limit)], lock=True)
    return await conn.row(OCCUPIED, *entity) is None


async def put(conn: Conn, now: int, key: int, kind: str, payload: bytes, dedupe: str | None = None) -> None:
    await conn.run(_PUT, key, kind, now, dedupe, payload)
    await conn.run(_WAKE, now, now, now, key)


async def put_with_events(
    conn: Conn, now: int, key: int, mail: tuple[str, bytes], events: Sequence[EventRow]
) -> None:
    """A message and its events, with one change of the run's row."""
    kind, payload = mail
    await conn.run(_PUT, key, kind, now, None, payload)
    first = await conn.number_events(key, len(events), 0, f"{_WOKEN}, ", (now, now, now))
    await _write_events(conn, key, events, first)


async def add_events_of(conn: Conn, _now: int, run: RunId, events: Sequence[EventRow]) -> None:
    found = await conn.row("SELECT key FROM @runs WHERE id = ?", run)
    if found is not None and events:
        await add_events(conn, found[0], events)


async def add_events(conn: Conn, key: int, events: Sequence[EventRow], nth: int = 0) -> None:
    """`nth`: counts, from 0, the runs that this transaction adds events to."""
    first = await conn.number_events(key, len(events), nth)
    await _write_events(conn, key, events, first)


async def _write_events(conn: Conn, key: int, events: Sequence[EventRow], first: int) -> None:
    rows = [(key << 32 | n, e.at, e.type, e.payload) for n, e in enumerate(events, first)]
    await conn.many(_ADD_EVENT, rows)


async def _is_known(conn: Conn, key: int, dedupe: str | None) -> bool:
    return dedupe is not None and await conn.row(_KNOWN, key, dedupe) is not None


async def pending(conn: Conn, run: RunId) -> tuple[int, list[InboxRow]]:
    found = await conn.rows(_PENDING, run)
    if not found:
        return 0, []
    return found[0][0], [InboxRow(*r[1:]) for r in found if r[1] is not None]


async def any_due(conn: Conn, now: int) -> bool:
    """Checks without locks: most sweeps end here."""
    return await conn.row(_ANY_DUE, now) is not None


async def fire_timers(conn: Conn, now: int, limit: int, run: RunId | None) -> int:
    due = [key for (key,) in await conn.rows(_DUE_RUNS, now, run, run, limit)]
    locked = dict(await conn.rows(_LOCK, due))
    # Timers of deleted runs. Left to the sweep over all runs, because a driver asks often and only for its
    # own.
    if run is None:
        await conn.run(_ORPHANS, now)
    fired = await conn.rows(FIRED, list(locked), now, limit)
    count = 0
    # Inbox rows are numbered as they are written, and a run reads them in that order.
    for key, token, _ in sorted(fired, key=lambda row: (row[2], row[0], row[1])):
        if locked[key] not in ENDED:
            await put(conn, now, key, "timer", token.encode())
            count += 1
    return count


async def next_timer(conn: Conn) -> int | None:
    found = await conn.row("SELECT min(fire_at) FROM @timers")
    return None if found is None else found[0]


async def wake_times(conn: Conn, runs: Sequence[RunId]) -> dict[RunId, int]:
    return {RunId(run): at for run, at in await conn.rows(_WAKE_TIMES, list(runs))}


async def report_late(conn: Conn, _now: int, run: RunId, seq: int, payload: bytes) -> None:
    await conn.run(_REPORT, seq, payload, run, seq, payload)


async def late_reports(conn: Conn, run: RunId) -> list[tuple[int, bytes]]:
    return [(seq, payload) for seq, payload in await conn.rows(_REPORTS, run)]


async def heads(conn: Conn, runs: Sequence[RunId]) -> dict[RunId, int]:
    sql = "SELECT id, inbox_seq FROM @runs WHERE id = ANY(?::text[])"
    return {RunId(run): seen for run, seen in await conn.rows(sql, list(runs))}
