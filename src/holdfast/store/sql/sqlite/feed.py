"""The feed: which events of which run were written, in commit order."""

from __future__ import annotations

from holdfast.store.errors import feed_trimmed
from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.types.ids import RunId

_FEED = """
SELECT feed.pos, runs.id, feed.first, feed.last FROM feed JOIN runs ON runs.key = feed.run_key
WHERE feed.pos > ? ORDER BY feed.pos LIMIT ?"""
_FLOOR = "SELECT pos FROM feed_marks WHERE trimmed ORDER BY pos DESC LIMIT 1"
_MARK = """
INSERT INTO feed_marks (pos, at) SELECT max(pos), ? FROM feed WHERE true HAVING max(pos) IS NOT NULL
ON CONFLICT DO NOTHING"""
_OLD = "SELECT max(pos) FROM feed_marks WHERE trimmed OR at <= ?"
_TRIM = """
DELETE FROM feed WHERE pos IN (
    SELECT pos FROM feed WHERE pos <= ? AND pos < (SELECT max(pos) FROM feed) ORDER BY pos LIMIT ?)
RETURNING pos"""


def feed(cur: Cursor, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
    found = [(pos, RunId(run), first, last) for pos, run, first, last in rows(cur, _FEED, (after, limit))]
    # Read after the rows: so a trim between the two statements is noticed.
    floor = row(cur, _FLOOR)
    if floor is not None and after < floor[0]:
        raise feed_trimmed(after, floor[0])
    return found


def trim_feed(cur: Cursor, now: int, before: int, limit: int) -> int:
    cur.execute(_MARK, (now,))
    found = row(cur, _OLD, (before,))
    if found is None or found[0] is None:
        return 0
    floor = found[0]
    cur.execute("UPDATE feed_marks SET trimmed = 1 WHERE pos = ?", (floor,))
    cur.execute("DELETE FROM feed_marks WHERE pos < ?", (floor,))
    # The last row stays, whatever its age: SQLite numbers the next one after it.
    return len(rows(cur, _TRIM, (floor, limit)))
