"""Reading checkpoints with their values: two reads, between which a checkpoint may be deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.integrations.langgraph.content import Codec
from holdfast.integrations.langgraph.value_blobs import fill_values
from holdfast.integrations.langgraph.values import StoredValue, ValueRef, rebuild
from holdfast.runs.blobs import BlobStore
from holdfast.types.graph_thread import GraphCheckpointRow, GraphFilter

Values = dict[str, StoredValue | str]
"""By channel. A text says what is wrong with a value."""


class StoredCheckpoint(NamedTuple):
    row: GraphCheckpointRow
    values: Values

    @property
    def intact(self) -> dict[str, StoredValue]:
        return {c: v for c, v in self.values.items() if isinstance(v, StoredValue)}


class CheckpointReader:
    """Reads the threads of a tenant, whose blobs are given. `channels`: only the values of these."""

    def __init__(
        self, blobs: BlobStore, tenant: str, codec: Codec, channels: Sequence[str] | None = None
    ) -> None:
        self._store, self._blobs = blobs.store, blobs
        self._tenant, self._codec, self._channels = tenant, codec, channels

    async def read(self, row: GraphCheckpointRow) -> StoredCheckpoint | None:
        """None if it was deleted after its row was read."""
        (values,) = await self._values([row])
        return await self._unless_deleted(row, values)

    async def read_all(self, rows: Sequence[GraphCheckpointRow]) -> list[StoredCheckpoint]:
        """Without those that were deleted after their rows were read. One read for each thread."""
        values: dict[int, Values] = {}
        for thread in dict.fromkeys(row.thread for row in rows):
            of_thread = [row for row in rows if row.thread == thread]
            found = await self._values(of_thread)
            values |= {row.number: each for row, each in zip(of_thread, found, strict=True)}
        read = [await self._unless_deleted(row, values[row.number]) for row in rows]
        return [each for each in read if each is not None]

    async def _values(self, rows: Sequence[GraphCheckpointRow]) -> list[Values]:
        """Of checkpoints of one thread."""
        refs: list[dict[str, ValueRef]] = []
        for row in rows:
            _, _, values = self._codec.head(row)
            refs.append({c: r for c, r in values.items() if self._channels is None or c in self._channels})
        numbers = sorted({ref.number for each in refs for ref in each.values() if ref.number is not None})
        found = await self._store.graph_values(self._tenant, rows[0].thread, numbers) if numbers else []
        found = await fill_values(self._blobs, found)
        return [rebuild(each, found) for each in refs]

    async def _unless_deleted(self, row: GraphCheckpointRow, values: Values) -> StoredCheckpoint | None:
        while any(isinstance(each, str) for each in values.values()):
            place = GraphFilter(tenant=self._tenant, thread=row.thread, ns=row.ns, id=row.id, unlisted=True)
            now = await self._store.graph_checkpoints(place)
            if not now:
                return None
            if now[0].body == row.body:
                break  # damaged
            row = now[0]
            (values,) = await self._values([row])
        return StoredCheckpoint(row, values)
