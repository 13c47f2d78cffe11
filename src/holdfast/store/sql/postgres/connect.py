"""Connections: how statements are translated and sent, and how rows are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from types import NoneType
from typing import Any, Protocol, cast

Row = tuple[Any, ...]

_TABLE = re.compile(r"@(\w+)(?:\[\w+\])?")  # the name of an index is a hint for other dialects
# PostgreSQL cannot store a NUL in a text. The mark is a private-use character; the character after it says
# what was replaced.
_MARK, _NUL, _ITSELF = "\ue0c0", "\ue0c00", "\ue0c01"
_PLAIN = frozenset({int, bool, float, bytes, NoneType})  # stored as they are


class DriverConnection(Protocol):
    """What this package uses of asyncpg's connections (their own annotations are incomplete for type
    checkers)."""

    async def fetch(self, query: str, *args: Any) -> list[Any]: ...

    async def execute(self, query: str, *args: Any) -> str: ...

    async def executemany(self, command: str, args: Iterable[Sequence[Any]]) -> None: ...


@lru_cache(2048)
def statement(text: str, schema: str) -> str:
    """`@runs` is the table in the store's schema: nothing depends on a search path, which belongs to a
    session. `?` are arguments in their order."""
    parts = _TABLE.sub(rf'"{schema}".\1', text).split("?")
    return "".join(part if i == 0 else f"${i}{part}" for i, part in enumerate(parts))


class PostgresConnection:
    """A connection, usually inside a transaction."""

    __slots__ = ("raw", "schema")

    def __init__(self, raw: Any, schema: str) -> None:
        self.raw = cast("DriverConnection", raw)
        self.schema = schema

    async def rows(self, text: str, *args: Any) -> list[Row]:
        found = await self.raw.fetch(statement(text, self.schema), *to_columns(args))
        return [from_columns(tuple(values)) for values in found]

    async def row(self, text: str, *args: Any) -> Row | None:
        """The first row, or None."""
        found = await self.rows(text, *args)
        return found[0] if found else None

    async def run(self, text: str, *args: Any) -> int:
        """Returns the number of affected rows."""
        status = await self.raw.execute(statement(text, self.schema), *to_columns(args))
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def many(self, text: str, each: Iterable[Sequence[Any]]) -> None:
        """Sends the same statement for each, together."""
        values = [to_columns(args) for args in each]
        if values:
            await self.raw.executemany(statement(text, self.schema), values)


def to_columns(values: Sequence[Any]) -> Sequence[Any]:
    """The values as columns store them. Almost always they stay as they are."""
    for value in values:
        if value.__class__ in _PLAIN:
            continue
        if isinstance(value, str):
            if "\0" in value or _MARK in value:
                return tuple(map(to_column, values))
        elif isinstance(value, list) and not _is_clean(cast("list[Any]", value)):
            return tuple(map(to_column, values))
    return values


def _is_clean(values: list[Any]) -> bool:
    """Whether all of them stay as they are: one call for a column of many rows."""
    for value in values:
        kind = value.__class__
        if kind is str:
            if "\0" in value or _MARK in value:
                return False
        elif kind not in _PLAIN:
            return False
    return True


def to_column(value: Any) -> Any:
    """The value as a column stores it."""
    if isinstance(value, str):
        if "\0" in value or _MARK in value:
            return value.replace(_MARK, _ITSELF).replace("\0", _NUL)
    elif isinstance(value, list):
        return [to_column(each) for each in cast("list[Any]", value)]
    return value


def from_columns(values: Row) -> Row:
    for value in values:
        if type(value) is str and _MARK in value:
            return tuple(_from_column(each) for each in values)
        if type(value) is list:
            return tuple(_from_column(each) for each in values)
    return values


def _from_column(value: Any) -> Any:
    if type(value) is str and _MARK in value:
        return value.replace(_NUL, "\0").replace(_ITSELF, _MARK)
    if type(value) is list:
        return [_from_column(each) for each in cast("list[Any]", value)]
    return value
