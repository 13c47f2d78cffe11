"""A connection as the other modules use it: statements are translated, sent and read here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from asyncmy.errors import IntegrityError

from holdfast.store.sql.concurrency_limits import GATHER
from holdfast.store.sql.mariadb.errors import DUPLICATE, code_of, packet_error
from holdfast.store.sql.mariadb.statement import Statement, statement
from holdfast.store.sql.run_inbox import FIRED

OVERRIDES: Final = {
    # A LIMIT inside IN is not supported; a DELETE with ORDER BY and LIMIT is.
    FIRED: """
DELETE FROM @timers WHERE run_key = ANY(?::bigint[]) AND fire_at <= ? ORDER BY fire_at LIMIT ?
RETURNING run_key, token, fire_at""",
    # There is no UPDATE .. FROM.
    GATHER: """
UPDATE @runs SET gate = ? WHERE flow = ? AND gate = '' AND NOT read_only
AND status IN ('pending', 'running', 'waiting', 'pending_input', 'resumable') ORDER BY key""",
}


Row = tuple[Any, ...]

_VALUES = re.compile(r"VALUES\s*\([^()]*\)\s*\Z")
_UPDATE = re.compile(r"\s*UPDATE @(\w+)( AS \w+)? SET (.*?)\s+WHERE\s(.*)\sRETURNING (.*)\Z", re.DOTALL)
_AT_ONCE = 500  # rows of one INSERT
_BYTES = 1 << 20  # of one INSERT of several rows


class MariadbConnection:
    """A connection, usually inside a transaction."""

    __slots__ = ("announced", "packet", "raw")

    def __init__(self, raw: Any, packet: int = 0) -> None:
        """`packet`: the server's max_allowed_packet, 0 if it is not known."""
        self.raw = raw
        self.packet = packet
        self.announced: list[tuple[int, int, int]] = []
        """(key of a run, first, last event): told to the feed at the end of the transaction."""

    async def rows(self, text: str, *args: Any) -> list[Row]:
        updates = _UPDATE.match(text)
        if updates is not None:
            return await self._returning(updates, args)
        return await self._fetch(_translated(text), args)

    async def row(self, text: str, *args: Any) -> Row | None:
        found = await self.rows(text, *args)
        return found[0] if found else None

    async def run(self, text: str, *args: Any) -> int:
        made = _translated(text)
        try:
            cursor = await self.send(made.filled(args))
        except IntegrityError as error:
            if made.ignores_duplicates and code_of(error) == DUPLICATE:
                return 0
            raise
        return cursor.rowcount

    async def many(self, text: str, each: Iterable[Sequence[Any]]) -> None:
        """Rows of a plain INSERT go together; anything else one after another."""
        made = _translated(text)
        values = list(each)
        if not _VALUES.search("?".join(made.parts)) or len(values) < 2:
            for args in values:
                await self.run(text, *args)
            return
        begin = made.parts[0].rindex("(")
        head, first = made.parts[0][:begin], made.parts[0][begin:]
        row = Statement((first, *made.parts[1:]), made.kinds, made.ignores_duplicates)
        for some in _batches([row.filled(args) for args in values]):
            await self._insert(head, some, made.ignores_duplicates)

    async def _insert(self, head: str, rows: Sequence[str], ignores_duplicates: bool) -> None:
        try:
            await self.send(head + ", ".join(rows))
        except IntegrityError as error:
            if not ignores_duplicates or code_of(error) != DUPLICATE:
                raise
            # The statement as a whole was undone: those that are new are found one by one.
            if len(rows) > 1:
                for each in rows:
                    await self._insert(head, [each], True)

    async def send(self, text: str) -> Any:
        """The cursor, with the result of one statement."""
        # The server would end the connection without a reason. Characters are counted: they may be longer.
        if self.packet and len(text) >= self.packet:
            raise packet_error(len(text), self.packet)
        cursor = self.raw.cursor()
        await cursor.execute(text)
        return cursor

    async def send_all(self, texts: Sequence[str]) -> list[Row]:
        """In one round trip; none after one that failed is executed. Returns the rows of the last."""
        cursor = await self.send(";\n".join(texts))
        while await cursor.nextset():
            pass
        return list(await cursor.fetchall())

    async def send_rows(self, text: str) -> list[Row]:
        """The rows of a compound statement that ends with one SELECT."""
        cursor = await self.send(text)
        found = list(await cursor.fetchall())
        while await cursor.nextset():
            pass
        return found

    async def _fetch(self, made: Statement, args: Sequence[Any]) -> list[Row]:
        try:
            cursor = await self.send(made.filled(args))
        except IntegrityError as error:
            if made.ignores_duplicates and code_of(error) == DUPLICATE:
                return []
            raise
        return list(await cursor.fetchall())

    async def _returning(self, updates: re.Match[str], args: Sequence[Any]) -> list[Row]:
        """UPDATE .. RETURNING, which MariaDB does not have: the rows are locked, changed and read."""
        table, alias, changes, where, columns = updates.groups(default="")
        given = changes.count("?")
        key = "key" if table == "runs" else "number"
        locked = await self.rows(f"SELECT {key} FROM @{table}{alias} WHERE {where} FOR UPDATE", *args[given:])
        numbers = [number for (number,) in locked]
        if not numbers:
            return []
        change = f"UPDATE @{table} SET {changes} WHERE {key} = ANY(?::bigint[])"
        await self.run(change, *args[:given], numbers)
        return await self.rows(f"SELECT {columns} FROM @{table} WHERE {key} = ANY(?::bigint[])", numbers)


def _translated(text: str) -> Statement:
    return statement(OVERRIDES.get(text, text))


def _batches(rows: Sequence[str]) -> Iterable[list[str]]:
    some: list[str] = []
    room = _BYTES
    for row in rows:
        if some and (len(some) >= _AT_ONCE or room < len(row)):
            yield some
            some, room = [], _BYTES
        some.append(row)
        room -= len(row)
    if some:
        yield some
