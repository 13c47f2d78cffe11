"""The hot path: records appended to their run, fenced by the lease's term (D-6, D-8)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.fence import OWNED, is_owned, lease_values
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn
from holdfast.store.sql.holds import RunRef
from holdfast.store.sql.side import apply_side, side_refusal
from holdfast.store.sql.sqlite.connect import Cursor, rows, run_now
from holdfast.store.sql.sqlite.dialect import SqliteConn, append
from holdfast.telemetry import crashpoint
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record, Refusal, RunBatch, SettleAnswer, Side

_STANDING = "SELECT term, head, event_seq, worker, status, tenant FROM runs WHERE key = ? AND id = ?"

_ADVANCE = "UPDATE runs SET head = ?, event_seq = ?, updated_at = ? WHERE key = ?"
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
        if not records:
            return SettleAnswer(lease.run, None, answered, _parked(cur, now, batch, worker))
    if not owned:
        return SettleAnswer(lease.run, Refusal.fenced)
    # A gap would be a record that no reader could ever apply.
    if records[0].seq != head + 1 or records[-1].seq != head + len(records):
        return SettleAnswer(lease.run, Refusal.head_moved)
    sides = [record.side for record in records if record.side is not None]
    refusal = run_now(side_refusal(SqliteConn(cur), lease.key, sides, status)) if sides else None
    if refusal is not None:
        return SettleAnswer(lease.run, refusal)
    last = append(cur, lease.key, records, event_seq)
    cur.execute(_ADVANCE, (records[-1].seq, last, now, lease.key))
    if sides:
        run_now(_apply(SqliteConn(cur), now, RunRef(lease.key, lease.run, tenant), sides))
    if batch.park is None:
        return SettleAnswer(lease.run, None, answered)
    return SettleAnswer(lease.run, None, answered, park(cur, now, lease, batch.park))


async def _apply(conn: Conn, now: int, run: RunRef, sides: Sequence[Side]) -> None:
    entries = AuditEntries()
    for side in sides:
        await apply_side(conn, now, run, side, entries)
    await entries.append(conn)


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
