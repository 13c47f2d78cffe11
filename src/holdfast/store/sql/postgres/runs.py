"""Runs: made, found, listed and deleted."""

from __future__ import annotations

import msgspec

from holdfast.errors import BlobMissingError, RunNotFoundError, RunReadOnlyError
from holdfast.store.protocols import NewRun, RunFilter, RunRow
from holdfast.store.sql.new_run import new_run_row
from holdfast.store.sql.postgres import gates
from holdfast.store.sql.postgres.audit import AuditEntries
from holdfast.store.sql.postgres.connect import Conn, Row
from holdfast.store.sql.postgres.run_holds import PostgresRunRef
from holdfast.store.sql.postgres.settle import INTO_JOURNAL, JOURNAL, RECORDS, record_values
from holdfast.store.sql.postgres.side import apply_side, check_transitions, close_all, missing_blob
from holdfast.types.ids import RunId
from holdfast.types.limit_rows import flow_limit
from holdfast.types.record import Side
from holdfast.types.status import ENDED, RunStatus

FIELDS = RunRow.__struct_fields__
COLUMNS = ", ".join(FIELDS)
BY_ID = f"SELECT {COLUMNS} FROM @runs WHERE id = ?"

_GIVEN = (
    "id", "tenant", "flow", "version", "code", "lane", "priority", "thread", "instance_key",
    "idempotency_key", "started_by", "deployment", "parent_run", "forked_from", "created_at", "updated_at",
    "ready_at", "head", "event_seq", "status", "term", "worker", "lease_until", "gate",
)  # fmt: skip
_INSERT = f"""
INSERT INTO @runs ({", ".join(_GIVEN)}, feed_pos)
SELECT {", ".join("?" * len(_GIVEN))}, CASE WHEN ?::boolean THEN @place(0, 0) ELSE 0 END
WHERE NOT EXISTS (SELECT 1 FROM @gates AS gates WHERE gates.root = ? AND gates.name = ? AND gates.fixed)
ON CONFLICT DO NOTHING RETURNING key, event_seq, feed_pos"""
_TELL = """
INSERT INTO @feed (pos, run_key, first, last)
SELECT feed_pos, key, 1, event_seq FROM made WHERE feed_pos > 0"""
# The run, its first records and its line in the feed in one statement.
_CREATE = f"""
WITH made AS ({_INSERT}), written AS (
    {INTO_JOURNAL}
    SELECT made.key << 32 | r.seq, r.told + 1, {", ".join(f"r.{name}" for name in JOURNAL)}
    FROM {RECORDS} CROSS JOIN made
), told AS ({_TELL})
SELECT key FROM made"""
_CREATE_BARE = f"WITH made AS ({_INSERT}), told AS ({_TELL}) SELECT key FROM made"
# Locked: then the commit waits for a synchronous standby, which may not have heard of the earlier run yet.
_EARLIER = f"""
SELECT {COLUMNS} FROM @runs WHERE tenant = ? AND flow = ? AND idempotency_key = ? FOR KEY SHARE"""
_SUPERSEDE = """
UPDATE @runs SET status = 'cancelled', worker = NULL, lease_until = NULL, ready_at = NULL,
                 ended_at = ?, updated_at = ?
WHERE key = ?"""

_STATUSES = {str(status): status for status in RunStatus}


def run_row(values: Row) -> RunRow:
    fields = dict(zip(FIELDS, values, strict=True))
    fields["status"] = _STATUSES[fields["status"]]
    return RunRow(**fields)


def is_plain(new: NewRun) -> bool:
    """One statement makes it."""
    return new.supersedes is None and all(record.side is None for record in new.first)


async def create(conn: Conn, now: int, new: NewRun) -> tuple[RunRow, bool] | None:
    """None, and nothing is written, for a run at no gate where an operator fixed one for its flow."""
    fresh = new_run_row(now, new)
    made = await _insert(conn, new, fresh)
    if made is None:
        if not new.gate and await gates.is_fixed(conn, new.flow):
            return None
        return run_row(await _earlier(conn, new)), False
    key: int = made[0]
    if is_plain(new):
        return msgspec.structs.replace(fresh, key=key), True
    entries = AuditEntries()
    sides = [r.side for r in new.first if r.side is not None]
    await _apply(conn, now, PostgresRunRef(key, new.id, new.tenant), fresh.status, sides, entries)
    if new.supersedes is not None:
        await _supersede(conn, now, new.supersedes, new.id, entries)
    await entries.append(conn)
    created = await conn.row(BY_ID, new.id)
    assert created is not None
    return run_row(created), True


async def _insert(conn: Conn, new: NewRun, fresh: RunRow) -> Row | None:
    values = [new.idempotency_key if name == "idempotency_key" else getattr(fresh, name) for name in _GIVEN]
    # Whoever stands at a gate already need not be asked to another one.
    fixed = "" if new.gate else flow_limit(new.flow)
    values += [fresh.event_seq > 0, fixed, fixed]
    if not new.first:
        return await conn.row(_CREATE_BARE, *values)
    columns = [list(column) for column in zip(*record_values(0, new.first), strict=True)]
    return await conn.row(_CREATE, *values, *columns)


async def _apply(
    conn: Conn, now: int, run: PostgresRunRef, status: RunStatus, sides: list[Side], entries: AuditEntries
) -> None:
    """Whatever is refused here takes the run's row back with it."""
    missing = await missing_blob(conn, sides)
    if missing is not None:
        raise BlobMissingError(
            f"The blob {missing.hex()} that run {run.id} begins with is not in the store.",
            hint="Put the blob again, then create the run.",
        )
    check_transitions(status, sides)
    for side in sides:
        await apply_side(conn, now, run, side, entries)


async def _earlier(conn: Conn, new: NewRun) -> Row:
    """The run that stands in the way of this one."""
    found = None
    if new.idempotency_key is not None:
        found = await conn.row(_EARLIER, new.tenant, new.flow, new.idempotency_key)
    found = found or await conn.row(f"{BY_ID} FOR KEY SHARE", new.id)
    assert found is not None
    return found


async def _supersede(conn: Conn, now: int, old: RunId, new: RunId, entries: AuditEntries) -> None:
    sql = "SELECT key, status, read_only, tenant FROM @runs WHERE id = ? FOR UPDATE"
    found = await conn.row(sql, old)
    if found is None:
        raise RunNotFoundError(f"There is no run {old} to supersede.")
    key, status, read_only, tenant = found
    if read_only:
        raise RunReadOnlyError(f"Run {old} is imported history: it cannot be superseded.", run=old)
    if status not in ENDED:
        await conn.run(_SUPERSEDE, now, now, key)
    await close_all(conn, now, PostgresRunRef(key, old, tenant), f"superseded by run {new}", entries)
    await conn.run("UPDATE @runs SET superseded_by = ?, term = term + 1 WHERE key = ?", new, key)


async def get(conn: Conn, run: RunId) -> RunRow | None:
    found = await conn.row(BY_ID, run)
    return None if found is None else run_row(found)


async def find(conn: Conn, prefix: str) -> list[RunRow]:
    sql = f"SELECT {COLUMNS} FROM @runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 10"
    return [run_row(r) for r in await conn.rows(sql, prefix, prefix + "\U0010ffff")]


async def select(conn: Conn, where: RunFilter, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
    """Newest first. The text depends only on which filters are given."""
    conditions: list[tuple[str, tuple[object, ...]]] = [("true", ())]
    for column in ("tenant", "flow", "thread", "version"):
        value = getattr(where, column)
        if value is not None:
            conditions.append((f"{column} = ?", (value,)))
    if where.status:
        conditions.append(("status = ANY(?::text[])", (list(where.status),)))
    if where.dead is not None:
        conditions.append(("dead AND NOT read_only" if where.dead else "(NOT dead OR read_only)", ()))
    if where.created_after is not None:
        conditions.append(("created_at > ?", (where.created_after,)))
    if where.created_before is not None:
        conditions.append(("created_at < ?", (where.created_before,)))
    if after is not None:
        conditions.append(("(created_at, key) < (?, ?)", tuple(after)))
    text = " AND ".join(condition for condition, _ in conditions)
    args = [value for _, values in conditions for value in values]
    sql = f"SELECT {COLUMNS} FROM @runs WHERE {text} ORDER BY created_at DESC, key DESC LIMIT ?"
    return [run_row(r) for r in await conn.rows(sql, *args, limit)]
