"""The feed: which events of which run were written, in commit order."""

from __future__ import annotations

import asyncio

from holdfast.store.errors import feed_trimmed
from holdfast.store.sql.connection import Conn
from holdfast.types.ids import RunId

_FEED = """
SELECT feed.pos, runs.id, feed.first, feed.last FROM @feed AS feed
JOIN @runs AS runs ON runs.key = feed.run_key
WHERE feed.pos > ? AND feed.pos < pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20
ORDER BY feed.pos LIMIT ?"""
_FLOOR = "SELECT pos FROM @feed_marks WHERE trimmed ORDER BY pos DESC LIMIT 1"
# Below every open transaction: no row can be added before a mark any more.
_MARK = """
INSERT INTO @feed_marks (pos, at)
SELECT pos, @now(?::bigint) FROM @feed
WHERE pos < pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20
ORDER BY pos DESC LIMIT 1 ON CONFLICT DO NOTHING"""
_OLD = "SELECT max(pos) FROM @feed_marks WHERE trimmed OR at <= ?"
# Another process that trims takes the rows after those, so that none waits.
_TRIM = """
DELETE FROM @feed WHERE pos IN (
    SELECT pos FROM @feed WHERE pos <= ? ORDER BY pos LIMIT ? FOR UPDATE SKIP LOCKED)"""
_HORIZON = """
SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint
FROM pg_current_snapshot() AS now"""
_PAUSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.1, 0.1)


async def feed(conn: Conn, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
    """Contains everything that was committed before the call, unless a transaction that began earlier stays
    open: then the feed ends before that one until it ends."""
    begun = 0
    for pause in _PAUSES:
        horizon = await conn.row(_HORIZON)
        assert horizon is not None
        begun = begun or horizon[1]
        if horizon[0] >= begun:
            break
        await asyncio.sleep(pause)
    found = await conn.rows(_FEED, after, limit)
    # Read after the rows: so a trim between the two statements is noticed.
    floor = await conn.row(_FLOOR)
    if floor is not None and after < floor[0]:
        raise feed_trimmed(after, floor[0])
    return [(pos, RunId(run), first, last) for pos, run, first, last in found]


async def trim_feed(conn: Conn, now: int | None, before: int, limit: int) -> int:
    await conn.run(_MARK, now)
    found = await conn.row(_OLD, before)
    if found is None or found[0] is None:
        return 0
    floor = found[0]
    await conn.run("UPDATE @feed_marks SET trimmed = true WHERE pos = ? AND NOT trimmed", floor)
    await conn.run("DELETE FROM @feed_marks WHERE pos < ?", floor)
    return await conn.run(_TRIM, floor, limit)
