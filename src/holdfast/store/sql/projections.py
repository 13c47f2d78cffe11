"""What checkpoints fold to, as rows that other programs may query in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from holdfast.store.sql.access import SqlAccess
from holdfast.store.sql.connection import Conn
from holdfast.types.ids import RunId
from holdfast.types.projection import Projection

# Waits for a delete or a prune of the run: no row outlives its record.
_PUT = """
INSERT INTO @projections (key, checkpoint, completed, node_states, original_input, output)
SELECT key << 32 | ?::bigint, ?, ?, ?, ?, ? FROM @runs WHERE id = ? AND ?::bigint BETWEEN horizon AND head
FOR KEY SHARE
ON CONFLICT DO NOTHING"""
_MOVE = """
INSERT INTO @projected AS p (one, pos) VALUES (1, ?)
ON CONFLICT (one) DO UPDATE SET pos = greatest(p.pos, excluded.pos)"""
_OF_RUN = """
SELECT p.key & 4294967295, checkpoint, completed, node_states, original_input, output
FROM @runs AS r JOIN @projections AS p ON p.key BETWEEN r.key << 32 AND r.key << 32 | 4294967295
WHERE r.id = ? ORDER BY p.key"""
_BLANK = """
UPDATE @projections SET node_states = NULL, original_input = NULL, output = NULL
WHERE node_states IS NOT NULL"""


class SqlProjections(SqlAccess):
    """The part of the store that keeps projections."""

    async def projected_to(self) -> int:
        found = await self._read(lambda conn: conn.row("SELECT pos FROM @projected"))
        return 0 if found is None else int(found[0])

    async def put_projections(self, rows: Sequence[Projection], *, upto: int) -> None:
        # Not flushed: what a power cut loses is computed again.
        await self._write(partial(_put, rows=rows, upto=upto), flushed=False)

    async def projections(self, run: RunId) -> list[Projection]:
        found = await self._read(lambda conn: conn.rows(_OF_RUN, run))
        return [
            Projection(
                run=run, seq=seq, checkpoint=checkpoint, completed=completed,
                node_states=states, original_input=given, output=output,
            )
            for seq, checkpoint, completed, states, given, output in found
        ]  # fmt: skip

    async def blank_projections(self) -> None:
        await self._write(lambda conn, _: conn.run(_BLANK))


async def _put(conn: Conn, _now: int, rows: Sequence[Projection], upto: int) -> None:
    await conn.many(
        _PUT,
        [
            (p.seq, p.checkpoint, p.completed, p.node_states, p.original_input, p.output, p.run, p.seq)
            for p in sorted(rows, key=lambda p: (p.run, p.seq))
        ],
    )
    await conn.run(_MOVE, upto)
