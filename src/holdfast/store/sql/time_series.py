"""When the newest runs and holds began and ended: the rows that series are computed from.

The newest of the tenant are taken from an index before anything else is filtered: the cost is bounded,
however long the history and however few rows of it are wanted, and other tenants change nothing."""

from __future__ import annotations

from holdfast.store.sql.connection import Conn
from holdfast.types.fleet import EndedRun, HoldTimes, RecentRows
from holdfast.types.hold import UNASKED

_NEWEST_RUNS = """
FROM @runs[runs_ended] WHERE tenant = ? AND ended_at >= ? ORDER BY tenant DESC, ended_at DESC LIMIT ?"""
_RUNS = f"""
SELECT ended_at, status FROM (SELECT ended_at, status, read_only {_NEWEST_RUNS}) AS newest
WHERE status IN ('completed', 'failed', 'cancelled') AND NOT read_only"""
_REACH_OF_RUNS = f"SELECT count(*), min(ended_at) FROM (SELECT ended_at {_NEWEST_RUNS}) AS newest"
_NEWEST_HOLDS = """
FROM @holds[holds_by_age] WHERE tenant = ? AND status = '{status}'
ORDER BY tenant DESC, status DESC, created_at DESC LIMIT ?"""
_HOLDS = """
SELECT status, created_at, ended_at, ended_by, expires_at, original_timeout, escalation_count FROM (
    SELECT status, created_at, coalesce(resolved_at, closed_at) AS ended_at,
           coalesce(resolved_by, closed_by) AS ended_by, expires_at, original_timeout, escalation_count,
           type, read_only {newest}) AS newest
WHERE (ended_at IS NULL OR ended_at >= ?) AND type NOT IN ({unasked}) AND NOT read_only"""
# Of the index alone.
_REACH = "SELECT count(*), min(created_at) FROM (SELECT created_at {newest}) AS newest"
_UNASKED = ", ".join(f"'{each}'" for each in UNASKED)
_HOLD_STATUSES = ("pending", "resolved", "expired", "cancelled")


async def ended_runs(conn: Conn, tenant: str, since: int, limit: int) -> RecentRows[EndedRun]:
    rows = [EndedRun(*values) for values in await conn.rows(_RUNS, tenant, since, limit)]
    reach = await _reach(conn, _REACH_OF_RUNS, (tenant, since, limit), limit)
    return RecentRows(rows, max(reach, default=None))


async def hold_times(conn: Conn, tenant: str, since: int, limit: int) -> RecentRows[HoldTimes]:
    rows: list[HoldTimes] = []
    reach: list[int] = []
    for status in _HOLD_STATUSES:
        newest = _NEWEST_HOLDS.format(status=status)
        found = await conn.rows(_HOLDS.format(newest=newest, unasked=_UNASKED), tenant, limit, since)
        rows += [_times(*values) for values in found]
        reach += await _reach(conn, _REACH.format(newest=newest), (tenant, limit), limit)
    return RecentRows(rows, max(reach, default=None))


def _times(
    status: str,
    created_at: int,
    ended_at: int | None,
    ended_by: str | None,
    expires_at: int | None,
    original_timeout: int | None,
    escalations: int,
) -> HoldTimes:
    return HoldTimes(
        status=status,
        created_at=created_at,
        ended_at=ended_at,
        ended_by=ended_by,
        expires_at=expires_at,
        original_timeout=original_timeout,
        escalations=escalations,
    )


async def _reach(conn: Conn, sql: str, args: tuple[str | int, ...], limit: int) -> list[int]:
    """The age of the oldest that was read, if there may be older ones."""
    found = await conn.row(sql, *args)
    return [] if found is None or found[0] < limit else [found[1]]
