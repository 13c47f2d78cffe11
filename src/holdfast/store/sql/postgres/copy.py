"""A schema of a PostgreSQL database as one end of a move.

One connection moves a schema: calls are made one at a time, some with every table locked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import msgspec

from holdfast.errors import HoldfastError
from holdfast.store.copy import (
    BATCH,
    GENERATED_COLUMNS,
    NOT_COPIED,
    Counters,
    MoveMark,
    TableShape,
    Values,
    require_state,
    select,
)
from holdfast.store.sql.move_endpoint import CopyConnection, ServerMoveEndpoint, next_blobs
from holdfast.store.sql.postgres import move_barrier
from holdfast.store.sql.postgres.address import PostgresSettings
from holdfast.store.sql.postgres.connect import PostgresConnection, to_column
from holdfast.store.sql.postgres.errors import DRIVER_ERRORS, RETRYABLE_ERRORS, translated
from holdfast.store.sql.postgres.migrate import migration_state
from holdfast.store.sql.postgres.servers import PostgresServers
from holdfast.store.sql.postgres.session import idle_timeout_statement
from holdfast.store.sql.postgres.store import PostgresStore

T = TypeVar("T")

# Short: while it waits for a lock, later writers wait behind it. So it gives up and tries again.
_PATIENCE = "SET LOCAL lock_timeout = '2s'"


class PostgresCopyConnection(CopyConnection[PostgresConnection]):
    driver_errors = (*DRIVER_ERRORS, ValueError)

    def __init__(self, servers: PostgresServers) -> None:
        super().__init__()
        self._settings = servers.settings
        self._servers = servers

    async def _connected(self) -> PostgresConnection:
        if self._raw is None or self._raw.is_closed():
            self._raw = await self._servers.connect(pooled=True)
        return PostgresConnection(self._raw, self._settings.schema)

    async def _transact(
        self, conn: PostgresConnection, work: Callable[[PostgresConnection], Awaitable[T]]
    ) -> T:
        raw: Any = conn.raw
        async with raw.transaction():
            await conn.run(idle_timeout_statement(self._settings))
            return await work(conn)

    async def _locked(
        self, conn: PostgresConnection, work: Callable[[PostgresConnection], Awaitable[T]]
    ) -> T:
        raw: Any = conn.raw
        async with raw.transaction():
            await conn.run(_PATIENCE)
            # This transaction holds all locks: if its process stops here, the server ends it before the
            # whole fleet waits.
            await conn.run(idle_timeout_statement(self._settings))
            await move_barrier.lock(conn)
            return await work(conn)

    def _is_lock_refused(self, error: BaseException) -> bool:
        return isinstance(error, (asyncpg.LockNotAvailableError, *RETRYABLE_ERRORS))

    def _translated(self, error: BaseException) -> HoldfastError:
        return translated(error, self._settings.shown)

    async def _leave(self, raw: Any) -> None:
        try:
            await raw.close(timeout=5)
        except DRIVER_ERRORS:
            raw.terminate()


_COLUMNS = """
SELECT table_name, column_name, data_type FROM information_schema.columns
WHERE table_schema = ? AND is_generated = 'NEVER'"""
_KEYS = """
SELECT c.relname, array_agg(a.attname::text ORDER BY k.place)
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (number, place)
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.number
WHERE n.nspname = ? AND i.indisprimary AND NOT c.relispartition GROUP BY c.relname"""
_IDENTITY = """
SELECT oid::text || ' ' || pg_postmaster_start_time()::text || ' ' || coalesce(inet_server_port(), 0)::text
FROM pg_database WHERE datname = current_database()"""
_COUNTING = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = ? AND is_identity = 'YES'"""
_LAST = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"
_SET = "SELECT setval('{sequence}', greatest(?::bigint, 1), ?::bigint > 0)"
_LAST_POSITION = """
SELECT coalesce(max(pos), 0)
FROM (SELECT pos FROM @feed UNION ALL SELECT pos FROM @feed_marks) AS positions"""
_FLOOR = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 20"
_HERE = "SELECT pg_current_xact_id()::text::bigint << 20"


class PostgresMoveEndpoint(ServerMoveEndpoint[PostgresConnection]):
    """Rows go in by COPY, on one connection."""

    def __init__(self, settings: PostgresSettings) -> None:
        servers = PostgresServers(settings)
        super().__init__(PostgresCopyConnection(servers), move_barrier)
        self._settings = settings
        schema = "" if settings.schema == "holdfast" else f"?schema={settings.schema}"
        self.where = f"{settings.shown}{schema}"
        self._types: dict[str, dict[str, str]] = {}

    # For both ends.

    async def exists(self) -> bool:
        return (await self._line.read(lambda conn: migration_state(conn, self.where))).expanded > 0

    async def prepare(self) -> None:
        await (await PostgresStore.open(self._settings)).close()

    async def identity(self) -> str:
        return f"{await self._line.one(_IDENTITY)} {self._settings.schema}"

    async def shapes(self) -> dict[str, TableShape]:
        await self._know_types()
        keys = await self._line.read(lambda conn: conn.rows(_KEYS, conn.schema))
        return {
            table: TableShape(
                table,
                tuple(key),
                tuple(sorted(set(self._types[table]) - GENERATED_COLUMNS.get(table, frozenset()))),
            )
            for table, key in keys
            if table not in NOT_COPIED
        }

    async def rows(self, shape: TableShape, after: Values | None) -> list[Values]:
        async def batch(conn: PostgresConnection) -> list[Values]:
            limit = BATCH if shape.table != "blobs" else await next_blobs(conn, after)
            text = select(shape, f"@{shape.table}", begun=after is not None)
            keys = zip(shape.key, after or (), strict=after is not None)
            beyond = [bool(value) if types[name] == "boolean" else value for name, value in keys]
            return await conn.rows(text, *beyond, limit)

        types, flags = self._types[shape.table], self._flags(shape)
        found = await self._line.read(batch)
        return [_portable_values(values, flags) for values in found] if flags else found

    # As the source.

    async def block_writes(self, *, fence: bool) -> None:
        async def sealed(conn: PostgresConnection) -> None:
            require_state(await move_barrier.read_mark(conn), "closing", "sealed")
            await move_barrier.unguard(conn)
            if fence:
                await move_barrier.fence(conn)
            await move_barrier.set_state(conn, "sealed")
            await move_barrier.guard(conn)

        await self._line.alone(sealed)

    async def cancel_move(self) -> None:
        await self._line.alone(move_barrier.forget)

    async def counters(self) -> dict[str, int]:
        async def counted(conn: PostgresConnection) -> dict[str, int]:
            ((feed,),) = await conn.rows(_LAST_POSITION)
            counters: dict[str, int] = {"feed": feed}
            for table, name in (await _sequences(conn)).items():
                ((last,),) = await conn.rows(_LAST.format(sequence=name))
                counters[table] = last
            return counters

        return await self._line.read(counted)

    # As the target.

    async def feed_floor(self) -> int | None:
        return await self._line.one(_FLOOR)

    async def begin(self, mark: MoveMark) -> None:
        async def begun(conn: PostgresConnection) -> None:
            require_state(await move_barrier.read_mark(conn), None)
            await move_barrier.write_mark(conn, mark)
            await move_barrier.guard(conn)

        await self._line.alone(begun)

    async def open_for_work(self, counters: Counters) -> None:
        async def opened(conn: PostgresConnection) -> None:
            # Only once: workers may have used numbers of the target since.
            require_state(await move_barrier.read_mark(conn), "filling")
            for table, name in (await _sequences(conn)).items():
                last = counters.get(table, 0)
                await conn.rows(_SET.format(sequence=name), last, last)
            await move_barrier.forget(conn)

        await self._line.alone(opened)

    async def clear(self) -> None:
        await self._line.alone(move_barrier.clear)

    # Rows.

    async def _copy_in(self, conn: PostgresConnection, shape: TableShape, batch: Sequence[Values]) -> None:
        flags = frozenset(self._flags(shape))
        kept: list[Values] = [
            tuple(bool(v) if i in flags else to_column(v) for i, v in enumerate(values)) for values in batch
        ]
        names = [*shape.columns]
        if shape.table == "holds":
            terms = names.index("terms")
            kept = [(*values, _also_for(values[terms])) for values in kept]
            names.append("shared")
        if shape.table == "feed" and await self._feed_anew(conn):
            kept = await _feed_positions(conn, names, kept)
        raw: Any = conn.raw
        await raw.copy_records_to_table(shape.table, schema_name=conn.schema, columns=names, records=kept)

    def _flags(self, shape: TableShape) -> list[int]:
        types = self._types[shape.table]
        return [i for i, name in enumerate(shape.columns) if types[name] == "boolean"]

    async def _feed_anew(self, conn: PostgresConnection) -> bool:
        found = await conn.row("SELECT anew FROM @moved")
        return found is not None and found[0]

    async def _know_types(self) -> None:
        if not self._types:
            found = await self._line.read(lambda conn: conn.rows(_COLUMNS, conn.schema))
            for table, column, kind in found:
                self._types.setdefault(table, {})[column] = kind


def _portable_values(values: Values, flags: Sequence[int]) -> Values:
    row = list(values)
    for i in flags:
        row[i] = int(row[i])
    return tuple(row)


def _also_for(terms: str) -> list[str]:
    """Who else may vote on a hold, from its terms: lists search for it in a separate column."""
    if terms == "{}":
        return []
    found: list[str] = msgspec.json.decode(terms).get("also_for", [])
    return [to_column(each) for each in found]


async def _feed_positions(
    conn: PostgresConnection, columns: Sequence[str], batch: Sequence[Values]
) -> list[Values]:
    """Positions of this transaction, in the order of the old ones (`feed` in schema/0001)."""
    ((here,),) = await conn.rows(_HERE)
    place = columns.index("pos")
    return [(*row[:place], here + (i << 6), *row[place + 1 :]) for i, row in enumerate(batch, 1)]


async def _sequences(conn: PostgresConnection) -> dict[str, str]:
    """Table -> the sequence that counts its rows."""
    found: dict[str, str] = {}
    for table, column in await conn.rows(_COUNTING, conn.schema):
        sql = "SELECT pg_get_serial_sequence(?, ?)"
        ((name,),) = await conn.rows(sql, f'"{conn.schema}"."{table}"', column)
        found[table] = name
    return {**found, "turns": f'"{conn.schema}".turn_numbers'}
