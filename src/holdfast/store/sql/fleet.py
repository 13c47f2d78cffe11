"""The part of the store that knows the workers, the deaths of runs, and how much there is to do.

Who works, as each last said of itself.
"""

from __future__ import annotations

from functools import partial

import msgspec

from holdfast.store.sql import reclaim, statistics
from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn, Row
from holdfast.types.fleet import WORKER_ROW_RETENTION, Death, FleetFigures, WorkerRow
from holdfast.types.ids import RunId

# A worker keeps its name until the time it announced; it may always replace its own row.
_ANNOUNCE = """
INSERT INTO @workers AS workers (name, incarnation, seen_at, until, body)
SELECT ?, ?, t.now, t.now + ?::bigint, ? FROM (SELECT @now(?::bigint) AS now) AS t WHERE true
ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, seen_at = excluded.seen_at,
                                 until = excluded.until, body = excluded.body
WHERE workers.incarnation = excluded.incarnation OR workers.until <= excluded.seen_at"""
_FORGET = "DELETE FROM @workers WHERE until < @now(?::bigint) - ?::bigint AND name <> ?"
_COLUMNS = "body, seen_at, until"
_HOLDER = f"SELECT {_COLUMNS} FROM @workers WHERE name = ?"
_ALL = f"SELECT {_COLUMNS} FROM @workers WHERE until >= @now(?::bigint) - ?::bigint ORDER BY name"
_DISMISS = "DELETE FROM @workers WHERE name = ? AND incarnation = ?"


async def announce(conn: Conn, now: int | None, worker: WorkerRow, ttl: int) -> WorkerRow | None:
    body = msgspec.msgpack.encode(worker)
    while await conn.run(_ANNOUNCE, worker.name, worker.incarnation, ttl, body, now) == 0:
        holder = await conn.row(_HOLDER, worker.name)
        if holder is not None:  # otherwise it left between the two statements
            return _row(holder)
    await conn.run(_FORGET, now, WORKER_ROW_RETENTION, worker.name)
    return None


async def workers(conn: Conn, now: int | None) -> list[WorkerRow]:
    return [_row(values) for values in await conn.rows(_ALL, now, WORKER_ROW_RETENTION)]


async def dismiss(conn: Conn, _now: int, name: str, incarnation: str) -> None:
    await conn.run(_DISMISS, name, incarnation)


def _row(values: Row) -> WorkerRow:
    body, seen_at, until = values
    said = msgspec.msgpack.decode(body, type=WorkerRow)
    return msgspec.structs.replace(said, seen_at=seen_at, until=until)


class SqlFleet(SqlAccess):
    async def announce(self, worker: WorkerRow, ttl: int) -> WorkerRow | None:
        # It tells live processes apart, and a power cut leaves none: it need not reach the disk at once.
        work = partial(announce, worker=worker, ttl=ttl)
        return await self._write(work, server_time=True, flushed=False)

    async def workers(self) -> list[WorkerRow]:
        return await self._read(partial(workers, now=self._server_time()))

    async def dismiss(self, name: str, incarnation: str) -> None:
        work = partial(dismiss, name=name, incarnation=incarnation)
        await self._write(work, single=True, flushed=False)

    async def deaths(self, run: RunId) -> list[Death]:
        return await self._read(partial(reclaim.deaths, run=run))

    async def figures(self, *, ages: tuple[int, ...]) -> FleetFigures:
        return await self._read(partial(statistics.figures, now=self._server_time(), ages=ages), slow=True)
