"""Deleting and pruning: what may go, and what stays because others are built from it.

The value of a delta channel is built from the writes of a checkpoint's ancestors, back to the last one that
has the value itself. These ancestors stay, unlisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.errors import ThreadOwnedError
from holdfast.integrations.langgraph import private_names
from holdfast.integrations.langgraph.content import Codec
from holdfast.integrations.langgraph.ownership import owned_error
from holdfast.telemetry import log
from holdfast.types.graph_thread import GraphCheckpointRow, GraphDrop, GraphFilter
from holdfast.types.retention import Retention

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.saver import HoldfastSaver

_PAGE = 200
Place = tuple[str, str]
"""(namespace, checkpoint)"""


async def delete_thread(saver: HoldfastSaver, thread: str) -> None:
    await _drop(saver, GraphDrop(tenant=saver.tenant, thread=thread, **_right(saver, thread)))


async def keep_latest(saver: HoldfastSaver, codec: Codec, thread: str, count: int = 1) -> None:
    """The newest of each namespace, so many of them."""
    rows = await _rows(saver, GraphFilter(tenant=saver.tenant, thread=thread, unlisted=True))
    listed: dict[str, list[str]] = {}
    for row in rows:
        if row.listed:
            listed.setdefault(row.ns, []).append(row.id)
    newest = {(ns, name) for ns, names in listed.items() for name in sorted(names)[-count:]}
    await _keep(saver, codec, thread, rows, newest)


class ThreadRetention:
    """Of the threads of a saver: those without a new checkpoint for so long are deleted, and of the others
    the newest checkpoints stay. A thread that another process has claimed is left for the next time."""

    def __init__(self, saver: HoldfastSaver, retention: Retention) -> None:
        self._saver = saver
        self._retention = retention
        # The newest checkpoint of each thread when it was last looked at.
        self._seen: dict[str, str] = {}

    async def apply(self) -> None:
        store, after = await self._saver.store(), ""
        while threads := await store.graph_threads(self._saver.tenant, after=after, limit=_PAGE):
            after = threads[-1].thread
            for row in threads:
                try:
                    await self._apply_to(row.thread)
                except ThreadOwnedError:
                    log.info("thread %r is in use: its retention is applied later", row.thread)

    async def _apply_to(self, thread: str) -> None:
        saver, store = self._saver, await self._saver.store()
        newest = await store.graph_checkpoint(saver.tenant, thread, "")
        if newest is None:
            return
        age = self._retention.seconds
        if age is not None and newest.written_at < store.now() - int(age * 1e6):
            await delete_thread(saver, thread)
            self._seen.pop(thread, None)
        elif self._retention.keep is not None and self._seen.get(thread) != newest.id:
            await keep_latest(saver, saver.codec, thread, self._retention.keep)
            self._seen[thread] = newest.id


async def delete_for_runs(saver: HoldfastSaver, codec: Codec, run_ids: Sequence[str]) -> None:
    if not run_ids:
        return
    named = await _rows(saver, GraphFilter(tenant=saver.tenant, run_ids=tuple(run_ids)))
    for thread in sorted({row.thread for row in named}):
        rows = await _rows(saver, GraphFilter(tenant=saver.tenant, thread=thread, unlisted=True))
        kept = {(row.ns, row.id) for row in rows if row.listed and row.run_id not in run_ids}
        await _keep(saver, codec, thread, rows, kept)


async def _keep(
    saver: HoldfastSaver, codec: Codec, thread: str, rows: list[GraphCheckpointRow], kept: set[Place]
) -> None:
    """Deletes all others, unless those that are kept need them."""
    needed = _needed(codec, rows, kept) - kept
    drop = GraphDrop(
        tenant=saver.tenant,
        thread=thread,
        places=tuple(
            place for row in rows if (place := (row.ns, row.id)) not in kept and place not in needed
        ),
        unlisted=tuple(sorted(needed)),
        **_right(saver, thread),
    )
    if drop.places or drop.unlisted:
        await _drop(saver, drop)


def _needed(codec: Codec, rows: Iterable[GraphCheckpointRow], kept: set[Place]) -> set[Place]:
    by_place = {(row.ns, row.id): row for row in rows}
    needed: set[Place] = set()
    for ns, name in kept:
        row: GraphCheckpointRow | None = by_place[ns, name]
        _, metadata, values = codec.head(by_place[ns, name])
        open_channels = set(metadata.get(private_names.DELTA_COUNTERS) or ()) - values.keys()
        while open_channels and row is not None and row.parent is not None:
            row = by_place.get((ns, row.parent))
            if row is not None:
                needed.add((ns, row.id))
                open_channels -= codec.head(row)[2].keys()
    return needed


async def _rows(saver: HoldfastSaver, where: GraphFilter) -> list[GraphCheckpointRow]:
    store, found = await saver.store(), list[GraphCheckpointRow]()
    while True:
        after = (found[-1].id, found[-1].number) if found else None
        page = await store.graph_checkpoints(where, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


def _right(saver: HoldfastSaver, thread: str) -> dict[str, Any]:
    return {"claim": saver.claim_of(thread) if saver.fenced else None, "fenced": saver.fenced}


async def _drop(saver: HoldfastSaver, drop: GraphDrop) -> None:
    store = await saver.store()
    refused = await saver.owners.write(drop.thread, lambda: store.drop_graph_rows(drop))
    saver.forget(drop.thread)
    if refused is not None:
        raise owned_error(drop.thread, refused)
