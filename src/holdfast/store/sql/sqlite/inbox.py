"""What others tell a run: messages, timers that fired, late evidence (D-17, D-29, D-30)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.settle import ANNOUNCE
from holdfast.types.event import EventRow
from holdfast.types.ids import RunId
from holdfast.types.record import InboxRow
from holdfast.types.status import ENDED, RunStatus

_TO = "SELECT key, status, superseded_by, dead FROM runs WHERE id = ? AND NOT read_only"
_PUT = "INSERT INTO inbox (run_key, kind, at, dedupe, payload) VALUES (?, ?, ?, ?, ?)"
_WAKE = """
UPDATE runs SET inbox_seq = inbox_seq + 1, updated_at = :now,
                ready_at = iif(worker IS NULL AND status NOT IN ('completed', 'failed', 'cancelled'),
                               min(coalesce(ready_at, :now), :now), ready_at)
WHERE key = :key"""
# Somebody looked at it and asked to go on: the bound on recoveries counts anew.
REVIVE = """
UPDATE runs SET status = 'resumable', ended_at = NULL, error = NULL, recoveries = 0, dead = 0
WHERE key = ?"""
# To stop needs no room: who is asked to waits in no line.
LEAVE_QUEUE = "UPDATE runs SET gate = '' WHERE key = ? AND worker IS NULL AND gate <> ''"
_WAKE_AND_NUMBER = _WAKE.replace("SET ", "SET event_seq = event_seq + :events, ", 1) + " RETURNING event_seq"
_NUMBER = "UPDATE runs SET event_seq = event_seq + ? WHERE key = ? RETURNING event_seq"
_HEADS = "SELECT id, inbox_seq FROM runs WHERE id IN (SELECT value FROM json_each(?))"
_ADD_EVENT = "INSERT INTO events (key, at, type, payload) VALUES (?, ?, ?, ?)"
_PENDING = """
SELECT runs.inbox_seq, inbox.id, inbox.kind, inbox.at, inbox.payload
FROM runs LEFT JOIN inbox ON inbox.run_key = runs.key AND inbox.done = 0
WHERE runs.id = ? ORDER BY inbox.id"""
_DUE = """
SELECT timers.run_key, timers.token, runs.status FROM timers LEFT JOIN runs ON runs.key = timers.run_key
WHERE timers.fire_at <= :now AND (:run IS NULL OR runs.id = :run) ORDER BY timers.fire_at LIMIT :limit"""
_REPORT = """
INSERT INTO late_reports (run_key, seq, payload)
SELECT key, ?2, ?3 FROM runs WHERE id = ?1 AND NOT EXISTS (
    SELECT 1 FROM late_reports WHERE run_key = runs.key AND seq = ?2 AND payload = ?3)"""
_REPORTS = """
SELECT seq, payload FROM late_reports WHERE run_key = (SELECT key FROM runs WHERE id = ?) ORDER BY number"""


def send(
    cur: Cursor,
    now: int,
    run: RunId,
    kind: str,
    payload: bytes,
    dedupe: str | None,
    event: EventRow | None,
) -> bool:
    found = row(
        cur, "SELECT key, status, superseded_by, dead FROM runs WHERE id = ? AND NOT read_only", (run,)
    )
    if found is None:
        return False
    key, status, superseded_by, dead = found
    heard = kind == "resume" or (kind == "cancel" and dead)
    resumes = status == RunStatus.failed and heard and superseded_by is None
    if (status in ENDED and not resumes) or _known(cur, key, dedupe):
        return False
    if resumes:
        cur.execute(REVIVE, (key,))
    if kind == "cancel":
        cur.execute(LEAVE_QUEUE, (key,))
    put(cur, now, key, kind, payload, dedupe)
    if event is not None:
        add_event(cur, key, event)
    return True


def put(cur: Cursor, now: int, key: int, kind: str, payload: bytes, dedupe: str | None = None) -> None:
    """The row, the run's inbox_seq and its wake-up: always together (D-29)."""
    cur.execute(_PUT, (key, kind, now, dedupe, payload))
    cur.execute(_WAKE, {"now": now, "key": key})


def add_event(cur: Cursor, key: int, event: EventRow) -> None:
    add_events(cur, key, [event])


def add_events(cur: Cursor, key: int, events: Sequence[EventRow]) -> None:
    ((last,),) = rows(cur, _NUMBER, (len(events), key))
    _write_events(cur, key, events, last)


def put_with_events(
    cur: Cursor, now: int, key: int, mail: tuple[str, bytes], events: Sequence[EventRow]
) -> None:
    """Mail and what is told of it, with one change of the run's row."""
    cur.execute(_PUT, (key, mail[0], now, None, mail[1]))
    ((last,),) = rows(cur, _WAKE_AND_NUMBER, {"now": now, "key": key, "events": len(events)})
    _write_events(cur, key, events, last)


def _write_events(cur: Cursor, key: int, events: Sequence[EventRow], last: int) -> None:
    first = last - len(events) + 1
    for number, event in enumerate(events, first):
        cur.execute(_ADD_EVENT, (key << 32 | number, event.at, event.type, event.payload))
    cur.execute(ANNOUNCE, (key, first, last))


def _known(cur: Cursor, key: int, dedupe: str | None) -> bool:
    if dedupe is None:
        return False
    return row(cur, "SELECT 1 FROM inbox WHERE run_key = ? AND dedupe = ?", (key, dedupe)) is not None


def pending(cur: Cursor, run: RunId) -> tuple[int, list[InboxRow]]:
    found = rows(cur, _PENDING, (run,))
    if not found:
        return 0, []
    return found[0][0], [InboxRow(*r[1:]) for r in found if r[1] is not None]


def due_timers(cur: Cursor, now: int, limit: int, run: RunId | None) -> list[Row]:
    return rows(cur, _DUE, {"now": now, "run": run, "limit": limit})


def fire_timers(cur: Cursor, now: int, limit: int, run: RunId | None) -> int:
    fired = 0
    for key, token, status in due_timers(cur, now, limit, run):
        cur.execute("DELETE FROM timers WHERE run_key = ? AND token = ?", (key, token))
        if status is not None and status not in ENDED:
            put(cur, now, key, "timer", token.encode())
            fired += 1
    return fired


def next_timer(cur: Cursor) -> int | None:
    found = row(cur, "SELECT min(fire_at) FROM timers")
    return None if found is None else found[0]


def report_late(cur: Cursor, _now: int, run: RunId, seq: int, payload: bytes) -> None:
    cur.execute(_REPORT, (run, seq, payload))


def late_reports(cur: Cursor, run: RunId) -> list[tuple[int, bytes]]:
    return [(seq, payload) for seq, payload in rows(cur, _REPORTS, (run,))]


def heads(cur: Cursor, runs: Sequence[RunId]) -> dict[RunId, int]:
    return {RunId(run): seen for run, seen in rows(cur, _HEADS, (json.dumps(list(runs)),))}
