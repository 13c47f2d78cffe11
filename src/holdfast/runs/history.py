"""What a run's journal tells, with or without the flow's code: events, and the records behind them (D-3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.lenient import LenientRegistry
from holdfast.errors import CheckpointCorruptError, FlowNotFoundError
from holdfast.model.events import derive_events
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.runs import announcing
from holdfast.runs.sealing import Sealer, kind_name
from holdfast.types.event import Event, EventRow
from holdfast.types.record import Record

if TYPE_CHECKING:
    from holdfast.runs.service import RunService
    from holdfast.store.base import RunRow


class Reader(msgspec.Struct, frozen=True):
    """What it takes to read a run: the graph of its version, and the codec of its values.

    `exact` is False where the flow's code is not loaded here: its own types are then shown as plain data.
    """

    graph: Graph
    sealer: Sealer
    exact: bool


async def reader_of(service: RunService, row: RunRow) -> Reader:
    """The program of the run's version where it is loaded, else the stored graph: no user code is needed."""
    runtime = service.runtime
    program = runtime.programs.get(row.version)
    if program is not None:
        return Reader(program.graph, runtime.sealer_of(program), True)
    stored = await service.store.flow(row.flow, row.version)
    if stored is None:
        raise FlowNotFoundError(
            f"version {row.version} of flow {row.flow!r} is neither loaded here nor stored.",
            hint="Load the flow's code; the run keeps its place meanwhile.",
            flow=row.flow,
            version=row.version,
        )
    return Reader(Graph(decode_graph(stored.graph)), Sealer(LenientRegistry()), False)


async def tell_events(service: RunService, row: RunRow, *, after: int, limit: int) -> list[Event]:
    """Events with a number > `after`, in order, at most `limit`. The cursor may lie inside a record."""
    rows = await service.store.events(row.id, after=after, limit=limit)
    if not rows:
        return []
    reader = await reader_of(service, row)
    told: list[Event] = []
    for stored in rows:
        told += (event for event in _told(reader, row, stored) if event.number > after)
        if len(told) >= limit:
            break
    told = told[:limit]
    await announcing.complete(service, row, reader, told)
    return told


async def bare_events(
    service: RunService, row: RunRow, reader: Reader, *, after: int, limit: int
) -> list[Event]:
    """Like `tell_events`, and whole records: without what only the run as a whole could tell."""
    rows = await service.store.events(row.id, after=after, limit=limit)
    return [event for stored in rows for event in _told(reader, row, stored) if event.number > after]


def _told(reader: Reader, row: RunRow, stored: Record | EventRow) -> Iterable[Event]:
    if isinstance(stored, EventRow):
        data: dict[str, Any] = msgspec.json.decode(stored.payload) if stored.payload else {}
        node = str(data.get("node", ""))
        return [Event(run=row.id, number=stored.number, at=stored.at, type=stored.type, node=node, data=data)]
    try:
        body = reader.sealer.open(stored)
    except CheckpointCorruptError:
        return _unreadable(row, stored)
    parts = derive_events(reader.graph, row.id, stored, body)
    return [
        Event(run=row.id, number=number, at=stored.at, type=kind, node=node, scope=scope, data=data)
        for number, (kind, node, scope, data) in enumerate(parts, stored.event_from)
    ]


def _unreadable(row: RunRow, record: Record) -> list[Event]:
    """A damaged record keeps its numbers, so that a cursor never meets a gap; its columns are still told."""
    data = {
        "seq": record.seq,
        "kind": kind_name(record),
        "digest": record.digest.hex(),
        "outcome": record.outcome,
    }
    return [
        Event(
            run=row.id,
            number=number,
            at=record.at,
            type="record.unreadable",
            node=record.node,
            scope=record.scope,
            data=data,
        )
        for number in range(record.event_from, record.event_from + record.events)
    ]
