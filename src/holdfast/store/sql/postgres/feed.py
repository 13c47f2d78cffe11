"""The feed: which events of which run were written, in commit order."""

from __future__ import annotations

import asyncio

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.server_feed import read_feed, trim
from holdfast.types.ids import RunId

_FEED = """
SELECT feed.pos, runs.id, feed.first, feed.last FROM @feed AS feed
JOIN @runs AS runs ON runs.key = feed.run_key
WHERE feed.pos > ? AND feed.pos < pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20
ORDER BY feed.pos LIMIT ?"""
# Below every open transaction: no row can be added before a mark any more.
_MARK = """
INSERT INTO @feed_marks (pos, at)
SELECT pos, @now(?::bigint) FROM @feed
WHERE pos < pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20
ORDER BY pos DESC LIMIT 1 ON CONFLICT DO NOTHING"""
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
    return await read_feed(conn, _FEED, after, limit)


async def trim_feed(conn: Conn, now: int | None, before: int, limit: int) -> int:
    return await trim(conn, now, before, limit, mark=_MARK, delete=_TRIM)
