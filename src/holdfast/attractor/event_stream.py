"""A run's events in the form of the specification, as they are committed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from holdfast.attractor.directory_sync import DIRECTORY_SYNCS
from holdfast.attractor.event_mapper import EventMapper, place_of
from holdfast.attractor.events import CheckpointSaved, PipelineEvent
from holdfast.runs.events import reader_of
from holdfast.runs.service import RunService
from holdfast.types.event import Event


async def pipeline_events(
    service: RunService,
    run: str,
    events: AsyncIterable[Event],
    *,
    after: str = "",
    driving: asyncio.Future[Any] | None = None,
) -> AsyncIterator[PipelineEvent]:
    """`events`: the stored ones, from the first. `after`: the place of the last event that the reader has.
    A checkpoint written by this process is reported only when its file exists. `driving`: the task that
    advances the run here.
    """
    reader = await reader_of(service, await service.get(run))
    mapper, seen = EventMapper(reader.graph), place_of(after)
    async for event in events:
        for entry in mapper.events_for(event):
            if (entry.number, entry.part) > seen:
                if isinstance(entry, CheckpointSaved):
                    await _written(run, entry.number, driving)
                yield entry


async def _written(run: str, number: int, driving: asyncio.Future[Any] | None) -> None:
    sync = DIRECTORY_SYNCS.of(run)
    while sync is None and driving is not None and not driving.done():
        # The run exists before a driver does: the directory appears when one starts.
        await asyncio.sleep(0.001)
        sync = DIRECTORY_SYNCS.of(run)
    if sync is not None:
        await sync.reached(number)


async def stored_events(service: RunService, run: str, *, after: str = "") -> list[PipelineEvent]:
    """The events stored so far."""
    reader = await reader_of(service, await service.get(run))
    events = await service.events(run, limit=1_000_000)
    return list(EventMapper(reader.graph).map_all(events, after))


async def last_place(service: RunService, run: str) -> str:
    """The place of the last event stored so far."""
    found = await stored_events(service, run)
    return found[-1].place if found else ""
