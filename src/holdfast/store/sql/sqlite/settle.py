"""The hot path: a range of records appended to its run, fenced by the lease's term (D-6, D-8)."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.side import apply_side, refused
from holdfast.telemetry import crashpoint
from holdfast.types.record import Lease, Record, Refusal, RunBatch, SettleAnswer

# Fence, head and numbering in one statement: no row means that the range needs a closer look.
ADVANCE = """
UPDATE runs SET head = ?, event_seq = event_seq + ?, updated_at = ?
WHERE key = ? AND term = ? AND head = ? AND worker = ?
RETURNING event_seq"""

APPEND = """
INSERT INTO journal (key, kind, at, term, node, visit, attempt, scope, effect, outcome, listed, events,
                     event_from, digest, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""

ANNOUNCE = "INSERT INTO feed (run_key, first, last) VALUES (?, ?, ?)"

_STANDING = "SELECT term, head, worker FROM runs WHERE key = ? AND id = ?"
_EXISTING = "SELECT term, digest, event_from FROM journal WHERE key BETWEEN ? AND ? ORDER BY key"


def settle(cur: Cursor, now: int, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
    """Each run's range or its refusal; a refused run leaves the others alone."""
    answers = [_settle_run(cur, now, batch) for batch in batches]
    crashpoint("inside_settle")
    return answers


def _settle_run(cur: Cursor, now: int, batch: RunBatch) -> SettleAnswer:
    records = batch.records
    events = 0
    for record in records:
        if record.side is not None:
            return _settle_carefully(cur, now, batch.lease, records)
        events += record.events
    lease = batch.lease
    advanced = cur.execute(
        ADVANCE, (records[-1].seq, events, now, lease.key, lease.term, records[0].seq - 1, lease.worker)
    ).fetchall()
    if not advanced:
        return _settle_carefully(cur, now, lease, records)
    first = advanced[0][0] - events + 1
    append(cur, lease.key, records, first)
    if events:
        cur.execute(ANNOUNCE, (lease.key, first, first + events - 1))
    return SettleAnswer(lease.run, None, first)


def append(cur: Cursor, key: int, records: Sequence[Record], number: int) -> None:
    """Journal rows, their events numbered from `number` on."""
    base = key << 32
    values: list[Row] = []
    for r in records:
        values.append(
            (base | r.seq, r.kind, r.at, r.term, r.node, r.visit, r.attempt, r.scope, r.effect, r.outcome,
             r.listed, r.events, number, r.digest, r.payload)
        )  # fmt: skip
        number += r.events
    if len(values) == 1:
        cur.execute(APPEND, values[0])
    else:
        cur.executemany(APPEND, values)


def _settle_carefully(cur: Cursor, now: int, lease: Lease, records: list[Record]) -> SettleAnswer:
    """Ranges with a side, repeats, and refusals: everything is checked before anything is written."""
    standing = row(cur, _STANDING, (lease.key, lease.run))
    if standing is None:
        return SettleAnswer(lease.run, Refusal.fenced)
    term, head, worker = standing
    already = _already_there(cur, lease.key, records, head)
    if already is None:
        return SettleAnswer(lease.run, Refusal.fenced if term != lease.term else Refusal.head_moved)
    known, event_from = already
    rest = records[known:]
    if not rest:
        return SettleAnswer(lease.run, None, event_from)
    if term != lease.term or worker != lease.worker:
        return SettleAnswer(lease.run, Refusal.fenced)
    if head != rest[0].seq - 1:
        return SettleAnswer(lease.run, Refusal.head_moved)
    refusal = refused(cur, lease, rest)
    if refusal is not None:
        return SettleAnswer(lease.run, refusal)
    first = _write(cur, now, lease, rest)
    return SettleAnswer(lease.run, None, event_from if known else first)


def _already_there(cur: Cursor, key: int, records: list[Record], head: int) -> tuple[int, int] | None:
    """How many of the range were written before, and the number of its first event; None if they differ."""
    first, last = records[0].seq, min(records[-1].seq, head)
    if last < first:
        return 0, 0
    base = key << 32
    existing = rows(cur, _EXISTING, (base | first, base | last))
    if len(existing) != last - first + 1:
        return None
    same = all((r.term, r.digest) == e[:2] for r, e in zip(records, existing, strict=False))
    return (len(existing), existing[0][2]) if same else None


def _write(cur: Cursor, now: int, lease: Lease, records: list[Record]) -> int:
    events = sum(r.events for r in records)
    where = (lease.key, lease.term, records[0].seq - 1, lease.worker)
    ((reached,),) = rows(cur, ADVANCE, (records[-1].seq, events, now, *where))
    first = reached - events + 1
    append(cur, lease.key, records, first)
    if events:
        cur.execute(ANNOUNCE, (lease.key, first, reached))
    for record in records:
        if record.side is not None:
            apply_side(cur, now, lease.key, record.side)
    return first
