"""The writes that the value of a delta channel is built from: those of a checkpoint's ancestors, back to the
last one that has the value itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from langgraph.checkpoint.base import DeltaChannelHistory

from holdfast.integrations.langgraph.content import ThreadPlace
from holdfast.types.graph_thread import GraphCheckpointRow

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.saver import HoldfastSaver

_PAGE: Final = 100

Histories = dict[str, DeltaChannelHistory]
"""By channel."""


async def delta_history(
    saver: HoldfastSaver, place: ThreadPlace, channels: Sequence[str]
) -> Mapping[str, DeltaChannelHistory]:
    """Oldest write first. Without a checkpoint in `place`: of the newest."""
    store, target = await saver.store(), place.checkpoint
    if target is None:
        newest = await store.graph_checkpoint(saver.tenant, place.thread, place.ns)
        target = None if newest is None else newest.id
    found: Histories = {channel: {"writes": []} for channel in channels}
    remaining = set(channels)
    while target is not None and remaining:
        rows = await store.graph_ancestors(saver.tenant, place.thread, place.ns, target, limit=_PAGE)
        for row in rows:
            await _add(saver, row, remaining, found)
            if not remaining:
                break
        target = rows[-1].id if len(rows) == _PAGE else None
    for entry in found.values():
        entry["writes"].reverse()
    return found


async def _add(saver: HoldfastSaver, row: GraphCheckpointRow, remaining: set[str], found: Histories) -> None:
    codec = saver.codec
    for write in reversed(codec.pending(row)):
        if write[1] in remaining:
            found[write[1]]["writes"].append(write)
    there = await (await saver.reader(sorted(remaining))).read(row)
    for channel, value in ({} if there is None else there.values).items():
        found[channel]["seed"] = codec.value(value, row, channel)
        remaining.discard(channel)
