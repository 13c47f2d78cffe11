"""The feed: which events of which run were written, in commit order."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.store.sql.connection import Conn
from holdfast.store.sql.server_feed import read_feed, trim
from holdfast.types.ids import RunId

# The last statements of a transaction. The row of `feed_head` stays locked until the commit, so positions are
# in commit order; nothing is locked after it, so nobody can wait for it in a circle.
_HEAD = """
INSERT INTO feed_head (one, pos) VALUES (1, LAST_INSERT_ID({count}))
ON DUPLICATE KEY UPDATE pos = LAST_INSERT_ID(pos + {count})"""
_ROWS = "INSERT INTO feed (pos, run_key, first, last) VALUES {rows}"
_FEED = """
SELECT feed.pos, runs.id, feed.first, feed.last FROM @feed AS feed
JOIN @runs AS runs ON runs.key = feed.run_key
WHERE feed.pos > ? ORDER BY feed.pos LIMIT ?"""
_MARK = """
INSERT INTO @feed_marks (pos, at) SELECT max(pos), @now(?::bigint) FROM @feed HAVING max(pos) IS NOT NULL
ON CONFLICT DO NOTHING"""
_TRIM = "DELETE FROM @feed WHERE pos <= ? ORDER BY pos LIMIT ?"


def announce(events: Sequence[tuple[int, int, int]]) -> list[str]:
    """The statements that tell the feed of (key of a run, first, last event)."""
    if not events:
        return []
    count = len(events)
    rows = ", ".join(
        f"(LAST_INSERT_ID() - {count - 1 - nth}, {key}, {first}, {last})"
        for nth, (key, first, last) in enumerate(events)
    )
    return [_HEAD.format(count=count), _ROWS.format(rows=rows)]


async def feed(conn: Conn, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
    return await read_feed(conn, _FEED, after, limit)


async def trim_feed(conn: Conn, now: int | None, before: int, limit: int) -> int:
    return await trim(conn, now, before, limit, mark=_MARK, delete=_TRIM)
