"""The part of the SQLite store that is about gates."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from holdfast.store.sql.sqlite import gates
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.writer import SqliteWriter
from holdfast.types.limit_rows import LimitRow


class SqliteLimits:
    """What it needs of the store: its clock, its one way to write, its readers."""

    _now: Callable[[], int]
    _writer: SqliteWriter
    _readers: SqliteReaders

    async def put_limit(self, gate: LimitRow) -> LimitRow:
        return await self._writer.write(partial(gates.put, gate=gate), wakes=True)

    async def gates(
        self, *, prefix: str = "", after: str = "", limit: int = 1000
    ) -> list[tuple[LimitRow, int, int]]:
        query = partial(gates.list_limits, now=self._now(), prefix=prefix, after=after, limit=limit)
        return self._readers.read_together(query)

    async def drop_limit(self, name: str, *, fixed: bool = True) -> bool:
        return await self._writer.write(partial(gates.drop, name=name, fixed=fixed), wakes=True)
