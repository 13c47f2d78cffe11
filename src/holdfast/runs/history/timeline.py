"""A run's visits from its stored history, with or without the flow's code, however far back that reaches."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import msgspec

from holdfast.checkpoint.run_history import begin
from holdfast.checkpoint.visit import Visit, Wait, place_of
from holdfast.errors import BlobMissingError, CheckpointCorruptError
from holdfast.model.graph import Graph
from holdfast.model.position import Exec, Position
from holdfast.runs.driver.load import load
from holdfast.runs.events import bare_events, hide_secrets
from holdfast.runs.history.versions import RunReader, RunReaders, readers_of
from holdfast.runs.history.visits import FOLDED, Visits, apply_event
from holdfast.runs.run_view import is_interrupted
from holdfast.types.event import Event

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow

PAGE = 5_000
_FIRST = 1
"""The number of a run's first claim."""
_PHASES = {
    "asked": "asking",
    "sleep": "waiting",
    "delay": "waiting",
    "doubt": "asking",
    "break": "asking",
    "failed": "failed",
}


class Timeline(msgspec.Struct, frozen=True):
    """`pos` is the run's position; None if its journal cannot be folded, and `damage` says why.
    `interrupted`: it has not ended, and no live worker has it. `first_worker`: the one that started it. The
    journal names only those that resume a run: it is known while that worker has the run, and if it died."""

    graph: Graph
    reader: RunReader
    visits: Visits
    pos: Position | None
    damage: str = ""
    interrupted: bool = False
    first_worker: str = ""


async def make_timeline(service: RunAccess, row: RunRow, keep: int | None = None) -> Timeline:
    """`keep`: the number of ended visits kept in full. Raises FlowNotFoundError if the graph is not
    stored."""
    readers = await readers_of(service, row)
    reader = readers.at(row.head)
    visits = await _folded(service, row, readers, keep)
    pos, damage = await _position(service, row, reader)
    if pos is not None:
        _reconcile(visits, pos, reader.graph)
    interrupted = row.ended_at is None and is_interrupted(row, service.store.now())
    if row.ended_at is not None:
        # A superseded run ended without a record.
        visits.stop(row.ended_at)
    elif interrupted:
        visits.mark_ready()
    visits.trim()
    first = visits.lost.get(_FIRST) or (row.worker if row.term == _FIRST else None) or ""
    return Timeline(reader.graph, reader, visits, pos, damage, interrupted, first)


MAX_KEPT = 20_000
"""Visits of a run whose fold is kept for the next request."""
MAX_AGE = 300_000_000
"""Microseconds after which a kept fold is made anew, so that it does not outlive what was removed."""


class KeptVisits(msgspec.Struct):
    """The visits of a run up to an event, which the next request continues with."""

    visits: Visits
    last: Event | None
    horizon: int
    made_at: int


async def _folded(service: RunAccess, row: RunRow, readers: RunReaders, keep: int | None) -> Visits:
    """From all events, or from those since the last request. What is secret is masked by what is known at
    the time, so a flow with secrets is folded anew."""
    kept_here = keep is None and not readers.at(row.head).graph.secrets
    if not kept_here:
        visits = Visits(keep)
        await _brought_along(service, row, readers.at(row.horizon), visits)
        async for event in _events(service, row, readers, 0):
            apply_event(visits, event)
        return visits
    # Taken out while it is in use: another request in the meantime makes its own.
    kept: KeptVisits | None = service.caches.timelines.pop(row.id, None)
    if kept is None or not await _is_current(service, row, readers, kept):
        kept = KeptVisits(Visits(), None, row.horizon, service.store.now())
        await _brought_along(service, row, readers.at(row.horizon), kept.visits)
    async for event in _events(service, row, readers, 0 if kept.last is None else kept.last.number):
        apply_event(kept.visits, event)
        kept.last = event
    if kept.last is None or len(kept.visits.ended) > MAX_KEPT:
        return kept.visits
    service.caches.keep_timeline(row.id, kept)
    return kept.visits.copy()


async def _is_current(service: RunAccess, row: RunRow, readers: RunReaders, kept: KeptVisits) -> bool:
    """Whether its journal goes on where the visits end."""
    if kept.last is None or kept.horizon != row.horizon or service.store.now() - kept.made_at > MAX_AGE:
        return False
    before = kept.last.number - 1
    found, _ = await bare_events(service, row, readers, after=before, limit=1, types=FOLDED)
    return bool(found) and found[0] == kept.last


async def _events(service: RunAccess, row: RunRow, readers: RunReaders, after: int) -> AsyncIterator[Event]:
    """Without secrets: visits are shown to people."""
    secret = bool(readers.at(row.head).graph.secrets)
    while True:
        events, last = await bare_events(service, row, readers, after=after, limit=PAGE, types=FOLDED)
        if last == after:
            return
        after = last
        for event in await hide_secrets(service, row, events) if secret else events:
            yield event


async def _brought_along(service: RunAccess, row: RunRow, reader: RunReader, visits: Visits) -> None:
    """A fork, and a pruned run, begin with what had happened before."""
    found = await service.store.read(row.id, first=row.horizon, last=row.horizon)
    try:
        history = begin(found[0], reader.codec.decode(found[0]))
    except (CheckpointCorruptError, IndexError):
        return
    for visit in history.executions:
        visits.add_ended(visit)
    for label in history.skipped:
        visits.node(place_of(label)).state = "skipped"


async def _position(service: RunAccess, row: RunRow, reader: RunReader) -> tuple[Position | None, str]:
    try:
        return (
            await load(service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs)
        ).pos, ""
    except (BlobMissingError, CheckpointCorruptError) as error:
        return None, error.message


def _reconcile(visits: Visits, pos: Position, graph: Graph) -> None:
    """Visits that began before the remaining history and have not ended."""
    if pos.status in ("completed", "failed", "cancelled"):
        return
    for (scope, node), execution in pos.execs.items():
        inner = pos.scope_graph(graph, pos.scopes[scope])
        if scope + inner.nodes[node].id not in visits.open:
            visits.begin(_begun(inner.nodes[node].id, execution, pos))


def _begun(node: str, execution: Exec, pos: Position) -> Visit:
    state = _PHASES.get(execution.phase, "running")
    visit = Visit(
        node=node,
        scope=execution.scope,
        visit=execution.visit,
        started_at=pos.at,
        state=state,
        attempts=execution.attempt,
        steps=len(execution.subs),
    )
    if state in ("asking", "waiting"):
        kind = "person" if state == "asking" else "time"
        visit.waits.append(Wait(kind=kind, since=pos.at, wake_at=execution.wake_at))
    return visit
