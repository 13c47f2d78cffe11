"""The feed of a database server, by the statements of its dialect."""

from __future__ import annotations

from holdfast.store.errors import feed_trimmed
from holdfast.store.sql.connection import Conn
from holdfast.types.ids import RunId

_FLOOR = "SELECT pos FROM @feed_marks WHERE trimmed ORDER BY pos DESC LIMIT 1"
_OLD = "SELECT max(pos) FROM @feed_marks WHERE trimmed OR at <= ?"


async def read_feed(conn: Conn, statement: str, after: int, limit: int) -> list[tuple[int, RunId, int, int]]:
    found = await conn.rows(statement, after, limit)
    # Read after the rows: so a trim between the two statements is noticed.
    floor = await conn.row(_FLOOR)
    if floor is not None and after < floor[0]:
        raise feed_trimmed(after, floor[0])
    return [(pos, RunId(run), first, last) for pos, run, first, last in found]


async def trim(conn: Conn, now: int | None, before: int, limit: int, *, mark: str, delete: str) -> int:
    await conn.run(mark, now)
    found = await conn.row(_OLD, before)
    if found is None or found[0] is None:
        return 0
    floor = found[0]
    await conn.run("UPDATE @feed_marks SET trimmed = true WHERE pos = ? AND NOT trimmed", floor)
    await conn.run("DELETE FROM @feed_marks WHERE pos < ?", floor)
    return await conn.run(delete, floor, limit)
