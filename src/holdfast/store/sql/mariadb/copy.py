"""A MariaDB database as one end of a move.

One connection moves a database: calls are made one at a time, some with every table locked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import msgspec

from holdfast.errors import HoldfastError
from holdfast.store.copy import (
    BATCH,
    GENERATED_COLUMNS,
    JSON_LIST_COLUMNS,
    NOT_COPIED,
    CopyProgress,
    Counters,
    MoveMark,
    TableShape,
    Values,
    require_state,
)
from holdfast.store.sql.mariadb import blobs, move_barrier
from holdfast.store.sql.mariadb.address import MariadbSettings
from holdfast.store.sql.mariadb.connect import MariadbConnection
from holdfast.store.sql.mariadb.errors import DRIVER_ERRORS, RETRYABLE, code_of, is_lost, translated
from holdfast.store.sql.mariadb.migrate import schema_number
from holdfast.store.sql.mariadb.session import connect, drop, leave
from holdfast.store.sql.mariadb.store import MariadbStore
from holdfast.store.sql.move_endpoint import CopyConnection, ServerMoveEndpoint, next_blobs

T = TypeVar("T")

# Short: while it waits for a lock, later writers wait behind it. So it gives up and tries again.
_PATIENCE = 2
_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = database() AND is_generated = 'NEVER' ORDER BY table_name, column_name"""
_KEYS = """
SELECT table_name, column_name FROM information_schema.statistics
WHERE table_schema = database() AND index_name = 'PRIMARY' ORDER BY table_name, seq_in_index"""
_IDENTITY = "SELECT concat_ws(' ', 'mariadb', @@hostname, @@port, @@datadir, database())"
_COUNTING = """
SELECT table_name, auto_increment FROM information_schema.tables
WHERE table_schema = database() AND auto_increment IS NOT NULL"""
_LAST_POSITION = """
SELECT coalesce(max(pos), 0) FROM (
    SELECT pos FROM @feed_head UNION ALL SELECT pos FROM @feed_marks
    UNION ALL SELECT pos FROM @feed) AS known"""


class MariadbCopyConnection(CopyConnection[MariadbConnection]):
    driver_errors = DRIVER_ERRORS

    def __init__(self, settings: MariadbSettings) -> None:
        super().__init__()
        self._settings = settings

    async def _connected(self) -> MariadbConnection:
        if self._raw is None:
            self._raw = await connect(self._settings)
        return MariadbConnection(self._raw)

    async def _transact(
        self, conn: MariadbConnection, work: Callable[[MariadbConnection], Awaitable[T]]
    ) -> T:
        await conn.send("BEGIN")
        try:
            done = await work(conn)
            await conn.send("COMMIT")
        except BaseException:
            # Whatever was done: it is not kept, and the connection is not used again.
            self._drop()
            raise
        return done

    async def _locked(self, conn: MariadbConnection, work: Callable[[MariadbConnection], Awaitable[T]]) -> T:
        await move_barrier.make(conn)
        await conn.send(f"SET SESSION lock_wait_timeout = {_PATIENCE}")
        try:
            await move_barrier.lock(conn)
            return await work(conn)
        finally:
            await conn.send("UNLOCK TABLES")

    def _is_lock_refused(self, error: BaseException) -> bool:
        return code_of(error) in RETRYABLE

    def _translated(self, error: BaseException) -> HoldfastError:
        if is_lost(error):
            self._drop()
        return translated(error, self._settings.shown)

    async def _leave(self, raw: Any) -> None:
        await leave(raw)

    def _drop(self) -> None:
        raw, self._raw = self._raw, None
        if raw is not None:
            drop(raw)


class MariadbMoveEndpoint(ServerMoveEndpoint[MariadbConnection]):
    rows_column = "`rows`"

    def __init__(self, settings: MariadbSettings) -> None:
        super().__init__(MariadbCopyConnection(settings), move_barrier)
        self._settings = settings
        self.where = settings.shown
        self._part = 0

    # For both ends.

    async def exists(self) -> bool:
        return await self._line.read(lambda conn: schema_number(conn, self.where)) > 0

    async def prepare(self) -> None:
        await (await MariadbStore.open(self._settings)).close()

    async def identity(self) -> str:
        return await self._line.one(_IDENTITY)

    async def shapes(self) -> dict[str, TableShape]:
        keys, columns = _grouped(await self._line.rows(_KEYS)), _grouped(await self._line.rows(_COLUMNS))
        return {
            table: TableShape(
                table,
                tuple(key),
                tuple(sorted(set(columns[table]) - GENERATED_COLUMNS.get(table, frozenset()))),
            )
            for table, key in keys.items()
            if table not in NOT_COPIED
        }

    async def rows(self, shape: TableShape, after: Values | None) -> list[Values]:
        async def batch(conn: MariadbConnection) -> list[Values]:
            limit = BATCH if shape.table != "blobs" else await next_blobs(conn, after)
            text, args = _next_rows(shape, after)
            found = await conn.rows(text, *args, limit)
            if shape.table == "blobs":
                return [await _whole_blob(conn, shape, values) for values in found]
            return [_portable_values(shape, values) for values in found]

        return await self._line.read(batch)

    # As the source.

    async def block_writes(self, *, fence: bool) -> None:
        async def sealed(conn: MariadbConnection) -> None:
            require_state(await move_barrier.read_mark(conn), "closing", "sealed")
            if fence:
                await move_barrier.unguard(conn)
                await move_barrier.fence(conn)
            await move_barrier.guard(conn)
            await move_barrier.set_state(conn, "sealed")

        await self._line.alone(sealed)

    async def cancel_move(self) -> None:
        await self._line.alone(move_barrier.unguard)
        await self._line.read(move_barrier.forget)

    async def counters(self) -> dict[str, int]:
        async def counted(conn: MariadbConnection) -> dict[str, int]:
            ((feed,),) = await conn.rows(_LAST_POSITION)
            ((turns,),) = await conn.rows("SELECT next_not_cached_value FROM turn_numbers")
            numbered = {table: max(0, next_ - 1) for table, next_ in await conn.rows(_COUNTING)}
            return {**numbered, "feed": feed, "turns": turns}

        return await self._line.read(counted)

    # As the target.

    async def feed_floor(self) -> int | None:
        return None  # positions continue after the last one

    async def begin(self, mark: MoveMark) -> None:
        async def begun(conn: MariadbConnection) -> None:
            require_state(await move_barrier.read_mark(conn), None)
            await move_barrier.guard(conn)
            await move_barrier.write_mark(conn, mark)

        await self._line.alone(begun)

    async def put(
        self, shape: TableShape, batch: Sequence[Values], was: CopyProgress, now: CopyProgress
    ) -> bool:
        if not self._part:
            self._part = blobs.part_size(int(await self._line.one("SELECT @@max_allowed_packet")))

        return await super().put(shape, batch, was, now)

    async def open_for_work(self, counters: Counters) -> None:
        async def opened(conn: MariadbConnection) -> None:
            # Only once: workers may have used numbers of the target since.
            require_state(await move_barrier.read_mark(conn), "filling")
            for table, _ in await conn.rows(_COUNTING):
                await conn.send(f"ALTER TABLE `{table}` AUTO_INCREMENT = {counters.get(table, 0) + 1}")
            await move_barrier.unguard(conn)
            await conn.run("DELETE FROM @feed_head")
            await conn.run("INSERT INTO @feed_head (one, pos) VALUES (1, ?)", counters.get("feed", 0))
            # Last: until then the store says that it is being filled.
            await conn.run("DELETE FROM @moved")

        await self._line.read(
            lambda conn: conn.row("SELECT SETVAL(turn_numbers, ?)", counters.get("turns", 0))
        )
        await self._line.alone(opened)
        await self._line.read(move_barrier.forget)

    async def clear(self) -> None:
        await self._line.read(move_barrier.clear)

    # Rows.

    async def _copy_in(self, conn: MariadbConnection, shape: TableShape, batch: Sequence[Values]) -> None:
        names, places = ", ".join(shape.columns), ", ".join("?" * len(shape.columns))
        text = f"INSERT INTO @{shape.table} ({names}) VALUES ({places})"
        if shape.table != "blobs":
            await conn.many(text, batch)
            return
        for values in batch:
            found = dict(zip(shape.columns, values, strict=True))
            data: bytes | None = found["data"]
            if data is not None and len(data) > self._part:
                found |= {"place": "parts", "data": None}
                await blobs.put_parts(conn, found["digest"], data, self._part)
            await conn.run(text, *found.values())


def _grouped(pairs: Sequence[Values]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for table, column in pairs:
        found.setdefault(table, []).append(column)
    return found


def _next_rows(shape: TableShape, after: Values | None) -> tuple[str, list[Any]]:
    """Written out, because MariaDB finds no range of an index in `(a, b) > (?, ?)`."""
    beyond, args = "true", list[Any]()
    if after is not None:
        choices: list[str] = []
        for nth, name in enumerate(shape.key):
            equal = [f"{each} = ?" for each in shape.key[:nth]]
            choices.append(f"({' AND '.join([*equal, f'{name} > ?'])})")
            args += after[: nth + 1]
        beyond = f"({' OR '.join(choices)})"
    columns, keys = ", ".join(shape.columns), ", ".join(shape.key)
    text = f"SELECT {columns} FROM @{shape.table} WHERE {shape.where} AND {beyond} ORDER BY {keys} LIMIT ?"
    return text, args


def _portable_values(shape: TableShape, values: Values) -> Values:
    return tuple(
        msgspec.json.decode(value) if (shape.table, name) in JSON_LIST_COLUMNS else value
        for name, value in zip(shape.columns, values, strict=True)
    )


async def _whole_blob(conn: MariadbConnection, shape: TableShape, values: Values) -> Values:
    found = dict(zip(shape.columns, values, strict=True))
    if found["place"] == "parts":
        whole = await blobs.get(conn, found["digest"])
        found |= {"place": "row", "data": None if whole is None else whole[1]}
    return tuple(found.values())
