"""Runs that wait for what no live worker has: found by version, and told of each change once."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.run_inbox import add_events
from holdfast.store.unserved import missing_event, missing_mark
from holdfast.types.fleet import WaitingRuns
from holdfast.types.ids import RunId

_CLAIMABLE = "worker IS NULL AND status IN ('pending', 'resumable') AND NOT read_only"
_WAITING = f"""
SELECT lane, flow, version, missing, count(*) FROM @runs WHERE {_CLAIMABLE} AND version = ANY(?::text[])
GROUP BY lane, flow, version, missing ORDER BY lane, flow, version, missing"""
# Runs that another transaction changes right now are told by the next sweep.
_TO_TELL = f"""
SELECT key FROM @runs WHERE {_CLAIMABLE} AND lane = ? AND flow = ? AND version = ? AND missing <> ?
AND (id = ANY(?::text[])) IS NOT TRUE ORDER BY key LIMIT ? FOR UPDATE SKIP LOCKED"""
_RUN = f"SELECT key FROM @runs WHERE {_CLAIMABLE} AND id = ? AND missing <> ? FOR UPDATE SKIP LOCKED"
_TAKEN = """
SELECT key FROM @runs[runs_missing] WHERE missing <> '' AND NOT read_only
AND (worker IS NOT NULL OR status IN ('waiting', 'pending_input'))
AND status NOT IN ('completed', 'failed', 'cancelled') ORDER BY key LIMIT ? FOR UPDATE SKIP LOCKED"""
_MARK = "UPDATE @runs SET missing = ? WHERE key = ANY(?::bigint[])"


async def waiting_runs(conn: Conn, versions: Sequence[str]) -> list[WaitingRuns]:
    return [WaitingRuns(*values) for values in await conn.rows(_WAITING, list(versions))]


async def tell_missing(
    conn: Conn, now: int, of: WaitingRuns, missing: Sequence[str], but: Sequence[RunId], limit: int
) -> int:
    found = await conn.rows(_TO_TELL, of.lane, of.flow, of.version, missing_mark(missing), list(but), limit)
    return await _tell(conn, now, [key for (key,) in found], missing)


async def tell_run(conn: Conn, now: int, run: RunId, missing: Sequence[str]) -> int:
    found = await conn.rows(_RUN, run, missing_mark(missing))
    return await _tell(conn, now, [key for (key,) in found], missing)


async def tell_taken(conn: Conn, now: int, limit: int) -> int:
    return await _tell(conn, now, [key for (key,) in await conn.rows(_TAKEN, limit)], ())


async def _tell(conn: Conn, now: int, keys: list[int], missing: Sequence[str]) -> int:
    if keys:
        await conn.run(_MARK, missing_mark(missing), keys)
    for nth, key in enumerate(keys):
        await add_events(conn, key, [missing_event(missing, now)], nth)
    return len(keys)
