"""The hot path: records appended to their run, fenced by the lease's term (D-6, D-8)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.fence import OWNED, is_owned, lease_values
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.side_changes import apply_rows, apply_status, side_refusal
from holdfast.store.sql.sqlite.connect import Cursor, rows, run_now
from holdfast.store.sql.sqlite.dialect import SqliteConn, append
from holdfast.telemetry import crashpoint
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record, Refusal, RunBatch, SettleAnswer, Side
from holdfast.types.status import ENDED

_STANDING = "SELECT term, head, event_seq, worker, status, tenant FROM runs WHERE key = ? AND id = ?"

# Most batches change the run's row by their records only: one statement checks the lease and advances it.
_ADVANCE_OWNED = f"""
UPDATE runs SET head = ?, event_seq = event_seq + ?, updated_at = ? WHERE {OWNED} AND head = ?
RETURNING event_seq"""
_ADVANCE = "UPDATE runs SET head = ?, event_seq = ?, updated_at = ? WHERE key = ?"
# With the end or the park of the run in the same statement: each change of its status changes three indexes.
_ADVANCE_AND_END = """
UPDATE runs SET head = ?, event_seq = ?, updated_at = ?, status = ?, error = coalesce(?, error), ended_at = ?,
                worker = NULL, lease_until = NULL, ready_at = NULL
WHERE key = ?"""
_ADVANCE_AND_PARK = """
UPDATE runs SET head = ?, event_seq = ?, updated_at = ?, status = ?, ready_at = ?, worker = NULL,
                lease_until = NULL
WHERE key = ? AND inbox_seq = ?"""
_PARK = f"""
UPDATE runs SET status = ?, ready_at = ?, worker = NULL, lease_until = NULL, updated_at = ?
WHERE {OWNED} AND inbox_seq = ?"""
_EXISTING = "SELECT term, digest, event_from FROM journal WHERE key BETWEEN ? AND ? ORDER BY key"


def settle(cur: Cursor, now: int, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
    """Each run's records or its refusal; a refused run does not affect the others."""
    answers = [_settle_run(cur, now, batch) for batch in batches]
    crashpoint("inside_settle")
    return answers


def _settle_run(cur: Cursor, now: int, batch: RunBatch) -> SettleAnswer:
    """Everything is checked before anything is written, so that a refusal needs no rollback."""
    lease, records = batch.lease, batch.records
    sides = [record.side for record in records if record.side is not None]
    if not sides and batch.park is None and records[-1].seq == records[0].seq + len(records) - 1:
        written = _settle_plain(cur, now, lease, records)
        if written is not None:
            return written
    found = cur.execute(_STANDING, (lease.key, lease.run)).fetchall()
    if not found:
        return SettleAnswer(lease.run, Refusal.fenced)
    term, head, event_seq, worker, status, tenant = found[0]
    owned = is_owned(lease, term, worker)
    answered = event_seq + 1
    if records[0].seq <= head:
        # Checked before the lease: a worker that repeats a settle whose answer was lost gets the same answer,
        # even if it was fenced since (D-8).
        already = _already_there(cur, lease.key, records, head)
        if already is None:
            return SettleAnswer(lease.run, Refusal.head_moved if owned else Refusal.fenced)
        known, answered = already
        records = records[known:]
        sides = [record.side for record in records if record.side is not None]
        if not records:
            return SettleAnswer(lease.run, None, answered, _parked(cur, now, batch, worker))
    if not owned:
        return SettleAnswer(lease.run, Refusal.fenced)
    # A gap would be a record that no reader could ever apply.
    if records[0].seq != head + 1 or records[-1].seq != head + len(records):
        return SettleAnswer(lease.run, Refusal.head_moved)
    refusal = run_now(side_refusal(SqliteConn(cur), lease.key, sides, status)) if sides else None
    if refusal is not None:
        return SettleAnswer(lease.run, refusal)
    last = append(cur, lease.key, records, event_seq)
    if sides:
        run_now(_apply(SqliteConn(cur), now, RunRef(lease.key, lease.run, tenant), sides))
    parked = _advance(cur, now, batch, (records[-1].seq, last, now), sides)
    return SettleAnswer(lease.run, None, answered, parked)


def _settle_plain(cur: Cursor, now: int, lease: Lease, records: list[Record]) -> SettleAnswer | None:
    """Records that change nothing beside the journal; None, and nothing is written, if they do not follow the
    run's head or the lease is lost."""
    events = sum([record.events for record in records])
    reached = (records[-1].seq, events, now, *lease_values(lease), records[0].seq - 1)
    moved = cur.execute(_ADVANCE_OWNED, reached).fetchall()
    if not moved:
        return None
    before = moved[0][0] - events
    append(cur, lease.key, records, before)
    return SettleAnswer(lease.run, None, before + 1)


async def _apply(conn: Conn, now: int, run: RunRef, sides: Sequence[Side]) -> None:
    entries = AuditEntries()
    for side in sides:
        await apply_rows(conn, now, run, side, entries)
    await entries.append(conn)


def _advance(
    cur: Cursor, now: int, batch: RunBatch, reached: tuple[int, int, int], sides: Sequence[Side]
) -> bool:
    """The run's own row. Returns whether the run was parked."""
    key = batch.lease.key
    changes = [side for side in sides if side.status is not None or side.error is not None]
    if len(changes) == 1 and changes[0].status in ENDED:
        cur.execute(_ADVANCE_AND_END, (*reached, changes[0].status, changes[0].error, now, key))
        return False
    how = batch.park
    if how is not None and not changes:
        cur.execute(_ADVANCE_AND_PARK, (*reached, how.status, how.ready_at, key, how.inbox_seen))
        if cur.connection.changes() == 1:
            return True
    cur.execute(_ADVANCE, (*reached, key))
    for side in changes:
        run_now(apply_status(SqliteConn(cur), now, key, side))
    return how is not None and bool(changes) and park(cur, now, batch.lease, how)


def park(cur: Cursor, now: int, lease: Lease, how: Park) -> bool:
    """Releases the run, unless a message arrived for it meanwhile (D-29)."""
    cur.execute(
        _PARK,
        (how.status, how.ready_at, now, *lease_values(lease), how.inbox_seen),
    )
    return cur.connection.changes() == 1


def _parked(cur: Cursor, now: int, batch: RunBatch, worker: str | None) -> bool:
    """For records that were settled before: the run may have been parked with them."""
    if batch.park is None:
        return False
    return worker is None or park(cur, now, batch.lease, batch.park)


def _already_there(cur: Cursor, key: int, records: list[Record], head: int) -> tuple[int, int] | None:
    """The number of records that were written before and the number of their first event; None if they
    differ."""
    first, last = records[0].seq, min(records[-1].seq, head)
    base = key << 32
    existing = rows(cur, _EXISTING, (base | first, base | last))
    if len(existing) != last - first + 1:
        return None
    # With the term: another worker may have written a record of the same number and the same content.
    same = all((r.term, r.digest) == e[:2] for r, e in zip(records, existing, strict=False))
    return (len(existing), existing[0][2]) if same else None
