"""Deleting and pruning: what may go, and what stays because others are built from it.

The value of a delta channel is built from the writes of a checkpoint's ancestors, back to the last one that
has the value itself. These ancestors stay, unlisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.integrations.langgraph import private_names
from holdfast.integrations.langgraph.content import Codec
from holdfast.integrations.langgraph.ownership import owned_error
from holdfast.types.graph_thread import GraphCheckpointRow, GraphDrop, GraphFilter

if TYPE_CHECKING:
    from holdfast.integrations.langgraph.saver import HoldfastSaver

_PAGE = 200
Place = tuple[str, str]
"""(namespace, checkpoint)"""


async def delete_thread(saver: HoldfastSaver, thread: str) -> None:
    await _drop(saver, GraphDrop(tenant=saver.tenant, thread=thread, **_right(saver, thread)))


async def keep_latest(saver: HoldfastSaver, codec: Codec, thread: str) -> None:
    rows = await _rows(saver, GraphFilter(tenant=saver.tenant, thread=thread, unlisted=True))
    newest: dict[str, GraphCheckpointRow] = {}
    for row in rows:
        if row.listed and (row.ns not in newest or newest[row.ns].id < row.id):
            newest[row.ns] = row
    await _keep(saver, codec, thread, rows, {(row.ns, row.id) for row in newest.values()})


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
