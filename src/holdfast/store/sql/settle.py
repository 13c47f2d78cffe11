"""Settling with every side effect: checked, answered and written run by run, in one transaction.

For dialects whose writers lock single rows. What is written is in `SettleConn`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.store.fence import is_owned
from holdfast.store.limit_admission import releases_lease
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.side_changes import apply_side, side_refusal
from holdfast.telemetry import crashpoint
from holdfast.types.lease import Lease
from holdfast.types.record import Park, Record, Refusal, RunBatch, SettleAnswer, Side
from holdfast.types.status import RunStatus

_STANDING = """
SELECT key, id, term, head, event_seq, worker, status, tenant, gate FROM @runs
WHERE key = ANY(?::bigint[]) ORDER BY key FOR UPDATE"""
_EXISTING = "SELECT term, digest, event_from FROM @journal WHERE key BETWEEN ? AND ? ORDER BY key"


def is_plain(batch: RunBatch) -> bool:
    """Nothing beside the run's own row, and at most one change of it."""
    sides = [record.side for record in batch.records if record.side is not None]
    if not all(map(_changes_only_status, sides)):
        return False
    changes = sum(side.status is not None for side in sides) + (batch.park is not None)
    return changes <= 1 and _is_range(batch.records)


def _changes_only_status(side: Side) -> bool:
    return not (
        side.holds or side.close_holds or side.close_all_holds is not None or side.timers or side.close_timers
        or side.close_all_timers or side.inbox_done or side.outbox or side.blobs or side.memories
        or side.migrated is not None or side.resumed_holds or side.status is RunStatus.cancelled
    )  # fmt: skip


def _is_range(records: list[Record]) -> bool:
    first = records[0].seq
    return records[-1].seq == first + len(records) - 1


def settle_answers(
    batches: Sequence[RunBatch], plain: Mapping[int, tuple[int, bool]], others: Sequence[SettleAnswer]
) -> list[SettleAnswer]:
    """In the order of the batches. `plain`: the number of the last event before, and whether the run was
    parked, by the keys of runs that were settled in one statement; `others`: the answers of the rest."""
    left = iter(others)
    return [
        SettleAnswer(batch.lease.run, None, plain[batch.lease.key][0] + 1, plain[batch.lease.key][1])
        if batch.lease.key in plain
        else next(left)
        for batch in batches
    ]


class SettleConn(Conn, Protocol):
    async def append(self, now: int, nth: int, key: int, records: Sequence[Record], last: int) -> None:
        """Writes journal rows, their row in the feed, and the run's row. Events are numbered after `last`."""
        ...

    async def park(self, now: int, lease: Lease, how: Park) -> bool:
        """Releases the run, unless a message arrived for it meanwhile (D-29)."""
        ...


async def settle(conn: SettleConn, now: int, batches: Sequence[RunBatch]) -> list[SettleAnswer]:
    """Each run's records or its refusal; a refused run does not affect the others."""
    found = await conn.rows(_STANDING, [batch.lease.key for batch in batches])
    standing = {(r[0], r[1]): r for r in found}
    entries = AuditEntries()
    answers = [
        await _settle_run(conn, now, nth, batch, standing.get((batch.lease.key, batch.lease.run)), entries)
        for nth, batch in enumerate(batches)
    ]
    await entries.append(conn)
    limited = {r[0] for r in found if r[8]}
    if limited and any(batch.lease.key in limited and releases_lease(batch) for batch in batches):
        # Runs may wait for the place under a limit that became free.
        await conn.notify()
    crashpoint("inside_settle")
    return answers


async def _settle_run(
    conn: SettleConn, now: int, nth: int, batch: RunBatch, standing: Row | None, entries: AuditEntries
) -> SettleAnswer:
    """Everything is checked before anything is written, so that a refusal needs no rollback."""
    lease, records = batch.lease, batch.records
    if standing is None:
        return SettleAnswer(lease.run, Refusal.fenced)
    _, _, term, head, event_seq, worker, status, tenant, _ = standing
    owned = is_owned(lease, term, worker)
    answered = event_seq + 1
    if records[0].seq <= head:
        # Checked before the lease: a worker that repeats a settle whose answer was lost gets the same answer,
        # even if it was fenced since (D-8).
        already = await _already_there(conn, lease.key, records, head)
        if already is None:
            return SettleAnswer(lease.run, Refusal.head_moved if owned else Refusal.fenced)
        known, answered = already
        records = records[known:]
        if not records:
            return SettleAnswer(lease.run, None, answered, await _parked(conn, now, batch, worker))
    if not owned:
        return SettleAnswer(lease.run, Refusal.fenced)
    # A gap would be a record that no reader could ever apply.
    if records[0].seq != head + 1 or records[-1].seq != head + len(records):
        return SettleAnswer(lease.run, Refusal.head_moved)
    sides = [record.side for record in records if record.side is not None]
    refusal = await side_refusal(conn, lease.key, sides, status) if sides else None
    if refusal is not None:
        return SettleAnswer(lease.run, refusal)
    await conn.append(now, nth, lease.key, records, event_seq)
    for side in sides:
        await apply_side(conn, now, RunRef(lease.key, lease.run, tenant), side, entries)
    parked = batch.park is not None and await conn.park(now, lease, batch.park)
    return SettleAnswer(lease.run, None, answered, parked)


async def _parked(conn: SettleConn, now: int, batch: RunBatch, worker: str | None) -> bool:
    """For records that were settled before: the run may have been parked with them."""
    if batch.park is None:
        return False
    return worker is None or await conn.park(now, batch.lease, batch.park)


async def _already_there(conn: Conn, key: int, records: list[Record], head: int) -> tuple[int, int] | None:
    """The number of records that were written before and the number of their first event; None if they
    differ."""
    first, last = records[0].seq, min(records[-1].seq, head)
    base = key << 32
    existing = await conn.rows(_EXISTING, base | first, base | last)
    if len(existing) != last - first + 1:
        return None
    # With the term: another worker may have written a record of the same number and the same content.
    same = all((r.term, r.digest) == e[:2] for r, e in zip(records, existing, strict=False))
    return (len(existing), existing[0][2]) if same else None
