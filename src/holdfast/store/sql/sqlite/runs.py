"""Runs: made, found, listed and deleted."""

from __future__ import annotations

import msgspec

from holdfast.errors import BlobMissingError, RunNotFoundError, RunReadOnlyError
from holdfast.store.hold_rules import RUN_DELETED_REASON
from holdfast.store.protocols import NewRun, RunFilter, RunRow
from holdfast.store.sql.new_run import new_run_row
from holdfast.store.sql.sqlite import gates, outbox
from holdfast.store.sql.sqlite.connect import Cursor, Row, row, rows
from holdfast.store.sql.sqlite.run_holds import SqliteRunRef
from holdfast.store.sql.sqlite.settle import append
from holdfast.store.sql.sqlite.side import apply_side, check_transitions, close_all, missing_blob
from holdfast.types.ids import RunId
from holdfast.types.record import Side
from holdfast.types.status import ENDED, RunStatus

FIELDS = RunRow.__struct_fields__
COLUMNS = ", ".join(FIELDS)
BY_ID = f"SELECT {COLUMNS} FROM runs WHERE id = ?"

_INSERT = """
INSERT INTO runs (id, tenant, flow, version, code, lane, priority, thread, instance_key, idempotency_key,
                  started_by, deployment, parent_run, forked_from, created_at, updated_at, ready_at, head,
                  event_seq, status, term, worker, lease_until, gate)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING key"""
_EARLIER = f"SELECT {COLUMNS} FROM runs WHERE tenant = ? AND flow = ? AND idempotency_key = ?"
_SUPERSEDE = """
UPDATE runs SET status = 'cancelled', worker = NULL, lease_until = NULL, ready_at = NULL,
                ended_at = ?, updated_at = ?
WHERE key = ?"""

_STATUSES = {str(status): status for status in RunStatus}
_OF_RUN = ("inbox", "timers", "holds", "late_reports", "blob_refs", "deaths")
_OF_HOLD = ("hold_notes", "hold_keys", "hold_links")


def run_row(values: Row) -> RunRow:
    fields = dict(zip(FIELDS, values, strict=True))
    fields["status"] = _STATUSES[fields["status"]]
    fields["read_only"] = bool(fields["read_only"])
    fields["dead"] = bool(fields["dead"])
    return RunRow(**fields)


def create(cur: Cursor, now: int, new: NewRun) -> tuple[RunRow, bool]:
    gate = new.gate or gates.fixed_for(cur, new.flow)
    if gate:
        return _create_at_gate(cur, now, msgspec.structs.replace(new, gate=gate))
    return _create(cur, now, new)


def _create_at_gate(cur: Cursor, now: int, new: NewRun) -> tuple[RunRow, bool]:
    """Where the gate is shut, the run is not claimed as it is made: it waits in line."""
    gates.declare(cur, now, new.gates)
    porter = None if new.claimed_by is None else gates.load_admission(cur, now)
    if porter is not None and not porter.passes(new.gate, starts=True):
        new, porter = msgspec.structs.replace(new, claimed_by=None, lease_until=None), None
    made, fresh = _create(cur, now, new)
    if porter is not None and fresh:
        gates.write_starts(cur, now, made.key, porter.enter(new.gate, starts=True))
    return made, fresh


def _create(cur: Cursor, now: int, new: NewRun) -> tuple[RunRow, bool]:
    fresh = new_run_row(now, new)
    inserted = row(cur, _INSERT, _values(new, fresh))
    if inserted is None:
        return run_row(_earlier(cur, new)), False
    key: int = inserted[0]
    if new.first:
        append(cur, key, new.first, 0)
    sides = [r.side for r in new.first if r.side is not None]
    if sides:
        _apply(cur, now, SqliteRunRef(key, new.id, new.tenant), fresh.status, sides)
    if new.supersedes is not None:
        _supersede(cur, now, new.supersedes, new.id)
    if not sides:
        return msgspec.structs.replace(fresh, key=key), True
    created = row(cur, BY_ID, (new.id,))
    assert created is not None
    return run_row(created), True


def _apply(cur: Cursor, now: int, run: SqliteRunRef, status: RunStatus, sides: list[Side]) -> None:
    """Whatever is refused here takes the run's row back with it."""
    missing = missing_blob(cur, sides)
    if missing is not None:
        raise BlobMissingError(
            f"The blob {missing.hex()} that run {run.id} begins with is not in the store.",
            hint="Put the blob again, then create the run.",
        )
    check_transitions(status, sides)
    for side in sides:
        apply_side(cur, now, run, side)


def _earlier(cur: Cursor, new: NewRun) -> Row:
    """The run that stands in the way of this one."""
    found = None
    if new.idempotency_key is not None:
        found = row(cur, _EARLIER, (new.tenant, new.flow, new.idempotency_key))
    found = found or row(cur, BY_ID, (new.id,))
    assert found is not None
    return found


def _values(new: NewRun, run: RunRow) -> Row:
    return (
        run.id, run.tenant, run.flow, run.version, run.code, run.lane, run.priority, run.thread,
        run.instance_key, new.idempotency_key, run.started_by, run.deployment, run.parent_run,
        run.forked_from, run.created_at, run.updated_at, run.ready_at, run.head, run.event_seq,
        run.status, run.term, run.worker, run.lease_until, run.gate,
    )  # fmt: skip


def _supersede(cur: Cursor, now: int, old: RunId, new: RunId) -> None:
    found = row(cur, "SELECT key, status, read_only, tenant FROM runs WHERE id = ?", (old,))
    if found is None:
        raise RunNotFoundError(f"There is no run {old} to supersede.")
    key, status, read_only, tenant = found
    if read_only:
        raise RunReadOnlyError(f"Run {old} is imported history: it cannot be superseded.", run=old)
    if status not in ENDED:
        cur.execute(_SUPERSEDE, (now, now, key))
    close_all(cur, now, SqliteRunRef(key, old, tenant), f"superseded by run {new}")
    cur.execute("UPDATE runs SET superseded_by = ?, term = term + 1 WHERE key = ?", (new, key))


def get(cur: Cursor, run: RunId) -> RunRow | None:
    found = row(cur, BY_ID, (run,))
    return None if found is None else run_row(found)


def find(cur: Cursor, prefix: str) -> list[RunRow]:
    sql = f"SELECT {COLUMNS} FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 10"
    return [run_row(r) for r in rows(cur, sql, (prefix, prefix + "\U0010ffff"))]


def select(cur: Cursor, where: RunFilter, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
    sql, args = listing(where, after)
    return [run_row(r) for r in rows(cur, sql, (*args, limit))]


def listing(where: RunFilter, after: tuple[int, int] | None) -> tuple[str, list[object]]:
    """Newest first. The text depends only on which filters are given."""
    conditions: list[tuple[str, tuple[object, ...]]] = []
    for column in ("tenant", "flow", "thread", "version"):
        value = getattr(where, column)
        if value is not None:
            conditions.append((f"{column} = ?", (value,)))
    if where.status:
        conditions.append((f"status IN ({', '.join('?' * len(where.status))})", where.status))
    if where.dead is not None:
        conditions.append(("dead AND NOT read_only" if where.dead else "(NOT dead OR read_only)", ()))
    if where.created_after is not None:
        conditions.append(("created_at > ?", (where.created_after,)))
    if where.created_before is not None:
        conditions.append(("created_at < ?", (where.created_before,)))
    if after is not None:
        conditions.append(("(created_at, key) < (?, ?)", after))
    text = " AND ".join(condition for condition, _ in conditions) or "1"
    args = [value for _, values in conditions for value in values]
    return f"SELECT {COLUMNS} FROM runs WHERE {text} ORDER BY created_at DESC, key DESC LIMIT ?", args


def delete(cur: Cursor, now: int, run: RunId, ended: bool) -> bool:
    found = row(cur, "SELECT key, lease_until, status, tenant FROM runs WHERE id = ?", (run,))
    if found is None or (found[1] is not None and found[1] > now) or (ended and found[2] not in ENDED):
        return False
    key = found[0]
    for table in ("journal", "events", "projections"):
        cur.execute(f"DELETE FROM {table} WHERE key BETWEEN ? AND ?", (key << 32, key << 32 | 0xFFFF_FFFF))
    _delete_holds(cur, now, SqliteRunRef(key, run, found[3]))
    for table in _OF_RUN:
        cur.execute(f"DELETE FROM {table} WHERE run_key = ?", (key,))
    cur.execute("DELETE FROM runs WHERE key = ?", (key,))
    return True


def _delete_holds(cur: Cursor, now: int, run: SqliteRunRef) -> None:
    """Those still open are closed first: what was sent about them is to be withdrawn, and the audit says so.
    Of what was to be told before, nothing is left to tell."""
    holds = [hold for (hold,) in rows(cur, "SELECT id FROM holds WHERE run_key = ?", (run.key,))]
    outbox.drop(cur, run.key, holds)
    close_all(cur, now, run, RUN_DELETED_REASON)
    outbox.detach_from_run(cur, holds)
    for hold in holds:
        for table in _OF_HOLD:
            cur.execute(f"DELETE FROM {table} WHERE hold = ?", (hold,))
