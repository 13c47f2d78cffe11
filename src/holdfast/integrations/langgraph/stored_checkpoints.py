"""Reading checkpoints with their values: two reads, between which a checkpoint may be deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import get_checkpoint_id

from holdfast.errors import InputError
from holdfast.integrations.langgraph.content import Codec, place_of
from holdfast.integrations.langgraph.value_blobs import fill_values
from holdfast.integrations.langgraph.values import StoredValue, ValueRef, rebuild_all
from holdfast.runs.blobs import BlobStore
from holdfast.types.graph_thread import GraphCheckpointRow, GraphFilter, facet_of

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
        return list(rebuild_all(refs, found))

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


def filter_of(
    tenant: str, config: RunnableConfig | None, wanted: dict[str, Any] | None, before: RunnableConfig | None
) -> GraphFilter:
    """What `list` of a saver asks for. Raises InputError."""
    facets: list[str] = []
    for key, value in (wanted or {}).items():
        try:
            facets += [] if value is None else [facet_of(key, value)]
        except (TypeError, ValueError) as error:
            raise InputError(
                f"checkpoints cannot be found by {key!r}: a {type(value).__name__} is no JSON.",
                hint="Use a text, a number, a flag, or lists and dicts of them.",
            ) from error
    place = None if config is None else place_of(config)
    given = {} if config is None else config.get("configurable") or {}
    return GraphFilter(
        tenant=tenant,
        thread=None if place is None else place.thread,
        ns=place.ns if place is not None and given.get("checkpoint_ns") is not None else None,
        id=None if place is None else place.checkpoint,
        before=None if before is None else get_checkpoint_id(before),
        facets=tuple(facets),
        absent=tuple(key for key, value in (wanted or {}).items() if value is None),
    )
