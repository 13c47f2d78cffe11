"""Runs: created, found and listed; the row of a new run as every SQL store inserts it."""

from __future__ import annotations

import msgspec

from holdfast.errors import BlobMissingError, RunNotFoundError, RunReadOnlyError
from holdfast.store.child_runs import require_open_parent
from holdfast.store.errors import require_idle_entity
from holdfast.store.rows import NewRun, RunFilter, RunRow, ThreadRow
from holdfast.store.sql import concurrency_limits
from holdfast.store.sql.audit import AuditEntries
from holdfast.store.sql.connection import Conn, Row
from holdfast.store.sql.hold_rows import RunRef
from holdfast.store.sql.side_changes import apply_side, check_transitions, close_all, missing_blob
from holdfast.types.concurrency_limits import flow_limit, root_of
from holdfast.types.hold import BREAKPOINT
from holdfast.types.ids import RunId, run_prefix
from holdfast.types.record import Side
from holdfast.types.status import ENDED, RunStatus


def new_run_row(now: int, new: NewRun) -> RunRow:
    """The row of a run about to be inserted, which gives it its key. Claimed at once: running, term 1."""
    claimed = new.claimed_by is not None
    return RunRow(
        key=0,
        id=new.id,
        tenant=new.tenant,
        flow=new.flow,
        version=new.version,
        code=new.code,
        status=RunStatus.running if claimed else RunStatus.pending,
        lane=new.lane,
        priority=new.priority,
        term=1 if claimed else 0,
        worker=new.claimed_by,
        lease_until=new.lease_until if claimed else None,
        head=new.first[-1].seq if new.first else -1,
        event_seq=sum([r.events for r in new.first]),
        inbox_seq=0,
        ready_at=new.ready_at,
        thread=new.thread,
        instance_key=new.instance_key,
        parent_run=new.parent_run,
        forked_from=new.forked_from,
        superseded_by=None,
        created_at=new.created_at,
        updated_at=now,
        ended_at=None,
        recoveries=0,
        error=None,
        horizon=0,
        started_by=new.started_by,
        deployment=new.deployment,
        limit=new.limit,
    )


FIELDS = RunRow.__struct_fields__
# A field that was renamed keeps its column.
COLUMN_NAMES = RunRow.__struct_encode_fields__
COLUMNS = ", ".join(COLUMN_NAMES)
BY_ID = f"SELECT {COLUMNS} FROM @runs WHERE id = ?"

# Locked: then the commit waits for a synchronous standby, which may not have received the earlier run yet.
_EARLIER = f"""
SELECT {COLUMNS} FROM @runs WHERE tenant = ? AND flow = ? AND idempotency_key = ? FOR KEY SHARE"""
# Locked: otherwise its end could miss the child that is created at the same time.
_PARENT = "SELECT status FROM @runs WHERE id = ? FOR SHARE"
_SUPERSEDE = """
UPDATE @runs SET status = 'cancelled', worker = NULL, lease_until = NULL, ready_at = NULL,
                 ended_at = ?, updated_at = ?
WHERE key = ?"""

_STATUSES = {str(status): status for status in RunStatus}


def run_row(values: Row) -> RunRow:
    fields = dict(zip(FIELDS, values, strict=True))
    fields["status"] = _STATUSES[fields["status"]]
    fields["read_only"] = bool(fields["read_only"])
    fields["dead"] = bool(fields["dead"])
    fields["suspect"] = bool(fields["suspect"])
    return RunRow(**fields)


def is_plain(new: NewRun) -> bool:
    """Only its row and its records are written, and nothing else is read."""
    return (
        new.supersedes is None and new.parent_run is None and all(record.side is None for record in new.first)
    )


async def create(conn: Conn, now: int, new: NewRun) -> tuple[RunRow, bool] | None:
    """None, and nothing is written, for a run without a limit if an operator set one for its flow."""
    if new.parent_run is not None:
        parent = await conn.row(_PARENT, new.parent_run)
        if parent is not None:
            require_open_parent(new.parent_run, parent[0])
    fresh = new_run_row(now, new)
    key = await conn.insert_run(new, fresh)
    if key is None:
        if not new.limit and await concurrency_limits.is_fixed(conn, new.flow):
            return None
        return run_row(await _earlier(conn, new)), False
    if is_plain(new):
        return msgspec.structs.replace(fresh, key=key), True
    entries = AuditEntries()
    sides = [r.side for r in new.first if r.side is not None]
    await _apply(conn, now, RunRef(key, new.id, new.tenant), fresh.status, sides, entries)
    if new.supersedes is not None:
        await _supersede(conn, now, new.supersedes, new.id, entries)
    await entries.append(conn)
    created = await conn.row(BY_ID, new.id)
    assert created is not None
    return run_row(created), True


async def create_limited(conn: Conn, now: int, new: NewRun, given: int | None) -> tuple[RunRow, bool]:
    """If the limit is reached, the run is not claimed as it is created: it is queued.

    `given`: see `@now(?)`."""
    new = msgspec.structs.replace(new, limit=new.limit or flow_limit(new.flow))
    await concurrency_limits.declare(conn, now, new.limits)
    admission = None
    if new.claimed_by is not None:
        # Locked before it is counted, and before the run's row: limits, runs, turns is the order of all
        # transactions.
        admission = await conn.load_admission(given, [root_of(new.limit)], lock=True)
        free = await concurrency_limits.is_entity_free(conn, new)
        if not (free and admission.passes(new.limit, starts=True)):
            new, admission = msgspec.structs.replace(new, claimed_by=None, lease_until=None), None
    made = await create(conn, now, new)
    assert made is not None
    row, fresh = made
    if admission is not None and fresh:
        await conn.write_starts([(row.key, start) for start in admission.enter(new.limit, starts=True)])
    elif fresh:
        await conn.notify()
    return row, fresh


async def _apply(
    conn: Conn, now: int, run: RunRef, status: RunStatus, sides: list[Side], entries: AuditEntries
) -> None:
    """A refusal rolls the run's row back as well."""
    missing = await missing_blob(conn, sides)
    if missing is not None:
        raise BlobMissingError(
            f"the blob {missing.hex()} that run {run.id} starts with is not in the store.",
            hint="Put the blob again, then create the run.",
        )
    check_transitions(status, sides)
    for side in sides:
        await apply_side(conn, now, run, side, entries)


async def _earlier(conn: Conn, new: NewRun) -> Row:
    """The run that was created before with the same id or idempotency key."""
    found = None
    if new.idempotency_key is not None:
        found = await conn.row(_EARLIER, new.tenant, new.flow, new.idempotency_key)
    found = found or await conn.row(f"{BY_ID} FOR KEY SHARE", new.id)
    assert found is not None
    return found


async def _supersede(conn: Conn, now: int, old: RunId, new: RunId, entries: AuditEntries) -> None:
    sql = "SELECT key, status, read_only, tenant, gate, lease_until FROM @runs WHERE id = ? FOR UPDATE"
    found = await conn.row(sql, old)
    if found is None:
        raise RunNotFoundError(f"there is no run {old} to supersede.")
    key, status, read_only, tenant, limit, lease_until = found
    require_idle_entity(old, limit, lease_until, now)
    if read_only:
        raise RunReadOnlyError(f"run {old} is imported history: it cannot be superseded.", run=old)
    if status not in ENDED:
        await conn.run(_SUPERSEDE, now, now, key)
    await close_all(conn, now, RunRef(key, old, tenant), f"superseded by run {new}", entries)
    # With a new term: a worker that has the old run now is refused with its next write.
    await conn.run("UPDATE @runs SET superseded_by = ?, term = term + 1 WHERE key = ?", new, key)


async def get(conn: Conn, run: RunId) -> RunRow | None:
    found = await conn.row(BY_ID, run)
    return None if found is None else run_row(found)


async def find(conn: Conn, prefix: str) -> list[RunRow]:
    sql = f"SELECT {COLUMNS} FROM @runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 10"
    # A range and not LIKE: it uses the index, and `%` in what the user typed has no meaning.
    return [run_row(r) for r in await conn.rows(sql, prefix, prefix + "\U0010ffff")]


async def select(conn: Conn, where: RunFilter, after: tuple[int, int] | None, limit: int) -> list[RunRow]:
    sql, args = listing(where, after)
    return [run_row(r) for r in await conn.rows(sql, *args, limit)]


async def count(conn: Conn, where: RunFilter) -> dict[RunStatus, int]:
    condition, args = _conditions(where)
    status, at = "status", list[object]()
    if where.shown_at is not None:
        status, at = f"CASE WHEN {_EXPIRED} THEN 'resumable' ELSE status END", [where.shown_at]
    # Over a sub-select: with a parameter in it, the expression cannot be named in GROUP BY.
    found = f"SELECT {status} AS shown FROM @runs WHERE {condition}"
    sql = f"SELECT shown, count(*) FROM ({found}) AS found GROUP BY shown"
    return {RunStatus(shown): number for shown, number in await conn.rows(sql, *at, *args)}


_THREADS = f"""
SELECT thread, count(*),
       count(CASE WHEN status NOT IN ({", ".join(f"'{each}'" for each in ENDED)}) THEN 1 END),
       count(CASE WHEN status = 'pending_input' THEN 1 END), min(created_at), max(created_at), max(updated_at)
FROM @runs WHERE tenant = ? AND thread IS NOT NULL GROUP BY thread"""
_NEWEST_THREAD_FIRST = " ORDER BY max(created_at) DESC, thread DESC LIMIT ?"


async def threads(conn: Conn, tenant: str, after: tuple[int, str] | None, limit: int) -> list[ThreadRow]:
    further = " HAVING (max(created_at), thread) < (?, ?)" if after is not None else ""
    found = await conn.rows(_THREADS + further + _NEWEST_THREAD_FIRST, tenant, *(after or ()), limit)
    names = ThreadRow.__struct_fields__
    return [ThreadRow(**dict(zip(names, values, strict=True))) for values in found]


_EXPIRED = "status = 'running' AND lease_until IS NOT NULL AND lease_until <= ?"


def _statuses(where: RunFilter) -> tuple[str, tuple[object, ...]]:
    text, wanted = f"status IN ({', '.join('?' * len(where.status))})", where.status
    running, resumable = RunStatus.running in wanted, RunStatus.resumable in wanted
    if where.shown_at is None or running == resumable:
        return text, wanted
    if resumable:
        return f"({text} OR ({_EXPIRED}))", (*wanted, where.shown_at)
    return f"{text} AND NOT ({_EXPIRED})", (*wanted, where.shown_at)


def listing(where: RunFilter, after: tuple[int, int] | None) -> tuple[str, list[object]]:
    """Newest first. The text depends only on which filters are given, so that statements are reused."""
    text, args = _conditions(where)
    if after is not None:
        # The key distinguishes runs of the same instant: otherwise a page could skip or repeat some of them.
        text, args = f"{text} AND (created_at, key) < (?, ?)", [*args, *after]
    # Few runs are leased: they are sorted, not looked for among all runs in the order of their creation.
    runs = "@runs[runs_leased]" if where.leased or where.worker is not None else "@runs"
    return f"SELECT {COLUMNS} FROM {runs} WHERE {text} ORDER BY created_at DESC, key DESC LIMIT ?", args


# Both sides in one case: `lower` of the databases agrees on ASCII letters, which ids and errors mostly are.
_CONTAINS = "lower({0}) LIKE ? ESCAPE '!'"
_TOOK = "coalesce(ended_at, ?) - created_at"
_AT_BREAKPOINT = f"key IN (SELECT run_key FROM @holds WHERE status = 'pending' AND type = '{BREAKPOINT}')"


def _part(text: str) -> str:
    """A pattern of LIKE for texts that contain this one."""
    quoted = text.lower().replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{quoted}%"


def _conditions(where: RunFilter) -> tuple[str, list[object]]:
    conditions: list[tuple[str, tuple[object, ...]]] = [("true", ())]
    for column in (
        "tenant",
        "flow",
        "thread",
        "version",
        "started_by",
        "instance_key",
        "deployment",
        "parent_run",
    ):
        value = getattr(where, column)
        if value is not None:
            conditions.append((f"{column} = ?", (value,)))
    if where.forked_from is not None:
        # The column has the checkpoint, whose id begins as that of its run.
        conditions.append(("forked_from LIKE ?", (f"{run_prefix(where.forked_from)}%",)))
    if where.status:
        conditions.append(_statuses(where))
    if where.dead is not None:
        conditions.append(("dead AND NOT read_only" if where.dead else "(NOT dead OR read_only)", ()))
    if where.created_after is not None:
        conditions.append(("created_at > ?", (where.created_after,)))
    if where.created_before is not None:
        conditions.append(("created_at < ?", (where.created_before,)))
    if where.error is not None:
        conditions.append((_CONTAINS.format("error"), (_part(where.error),)))
    if where.text is not None:
        found = f"({_CONTAINS.format('flow')} OR id LIKE ? ESCAPE '!')"
        conditions.append((found, (_part(where.text), _part(where.text)[1:])))
    for sign, length in ((">", where.took_over), ("<", where.took_under)):
        if length is not None:
            conditions.append((f"{_TOOK} {sign} ?", (where.shown_at, length)))
    if where.at_breakpoint:
        conditions.append((_AT_BREAKPOINT, ()))
    if where.leased or where.worker is not None:
        conditions.append(("worker IS NOT NULL", ()))
    if where.worker is not None:
        conditions.append(("worker = ?", (where.worker,)))
    text = " AND ".join(condition for condition, _ in conditions)
    return text, [value for _, values in conditions for value in values]
