"""What checkpoints fold to, as rows for whoever asks in SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from holdfast.store.sql.sqlite.connect import Cursor, row, rows
from holdfast.store.sql.sqlite.readers import SqliteReaders
from holdfast.store.sql.sqlite.writer import SqliteWriter
from holdfast.types.ids import RunId
from holdfast.types.projection import Projection

_PUT = """
INSERT INTO projections (key, checkpoint, completed, node_states, original_input, output)
SELECT key << 32 | ?, ?, ?, ?, ?, ? FROM runs WHERE id = ? AND ? BETWEEN horizon AND head
ON CONFLICT DO NOTHING"""
_MOVE = """
INSERT INTO projected (one, pos) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET pos = max(pos, excluded.pos)"""
_OF_RUN = """
SELECT p.key & 0xffffffff, checkpoint, completed, node_states, original_input, output
FROM runs JOIN projections AS p ON p.key BETWEEN runs.key << 32 AND runs.key << 32 | 0xffffffff
WHERE runs.id = ? ORDER BY p.key"""
_BLANK = """
UPDATE projections SET node_states = NULL, original_input = NULL, output = NULL
WHERE node_states IS NOT NULL"""


class SqliteProjections:
    """What it needs of the store: its one way to write, its readers."""

    _now: Callable[[], int]
    _writer: SqliteWriter
    _readers: SqliteReaders

    async def projected_to(self) -> int:
        return self._readers.read(_reached)

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        # What a power cut takes is made again: nobody waits for the disk.
        await self._writer.write(partial(_put, given=rows, upto=upto), flushed=False)

    async def projections(self, run: RunId) -> list[Projection]:
        return self._readers.read(partial(_of_run, run=run))

    async def blank_projections(self) -> None:
        await self._writer.write(_blank)


def _reached(cur: Cursor) -> int:
    found = row(cur, "SELECT pos FROM projected", ())
    return 0 if found is None else found[0]


def _put(cur: Cursor, _now: int, given: Sequence[Projection], upto: int) -> None:
    for p in given:
        content = (p.checkpoint, p.completed, p.node_states, p.original_input, p.output)
        cur.execute(_PUT, (p.seq, *content, p.run, p.seq))
    cur.execute(_MOVE, (upto,))


def _of_run(cur: Cursor, run: RunId) -> list[Projection]:
    return [
        Projection(
            run=run, seq=seq, checkpoint=checkpoint, completed=completed,
            node_states=states, original_input=given, output=output,
        )
        for seq, checkpoint, completed, states, given, output in rows(cur, _OF_RUN, (run,))
    ]  # fmt: skip


def _blank(cur: Cursor, _now: int) -> None:
    cur.execute(_BLANK)
