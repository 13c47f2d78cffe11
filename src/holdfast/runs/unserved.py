"""Work that no live worker takes: ready runs by lane and version, and schedules by flow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from holdfast.model.fingerprint import CODED, dialect_of, requirements_in
from holdfast.store.protocols import Store
from holdfast.store.rows import RunRow
from holdfast.types.fleet import FleetFigures, ScheduledFlow, VersionBacklog, WorkerRow
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus

_READY: Final = (RunStatus.pending, RunStatus.resumable)
_MEANS: Final = {
    "agent": "the agent's program on its PATH",
    "backend": "`--backend [NAME=]SPEC`",
    "commit": "the commit in its repository",
    "file": "the file",
    "handler": "`--handlers MODULE`",
    "kit": "its tools",
    "program": "the program on its PATH",
    "provider": "the provider's key in its environment",
    "repository": "the repository",
    "setting": "`--allow-code`",
}
"""By the kind of a requirement: how a worker gets it."""


class UnservedWork(msgspec.Struct, frozen=True):
    """`lanes`: ready runs in a lane that no worker serves; `versions`: those whose lane is served, but by no
    worker that has their code."""

    lanes: list[VersionBacklog]
    versions: list[VersionBacklog]
    schedules: list[ScheduledFlow]

    @property
    def runs(self) -> list[VersionBacklog]:
        return [*self.lanes, *self.versions]


def find_unserved(figures: FleetFigures, workers: Iterable[WorkerRow]) -> UnservedWork:
    serving = [row for row in workers if row.until > figures.at and not row.draining]
    flows = {flow for row in serving for flow in row.versions.values()}
    lanes: list[VersionBacklog] = []
    versions: list[VersionBacklog] = []
    for work in figures.versions:
        here = [row for row in serving if row.lanes is None or work.lane in row.lanes]
        if not here:
            lanes.append(work)
        elif not any(serves(row, work.version) for row in here):
            versions.append(work)
    return UnservedWork(lanes, versions, [each for each in figures.scheduled if each.flow not in flows])


async def missing_means(store: Store, rows: Sequence[RunRow]) -> dict[RunId, tuple[str, ...]]:
    """By run that could be claimed: what it needs and no live worker has. Empty while no worker is alive at
    all: then every run waits for one."""
    ready = [row for row in rows if row.worker is None and row.status in _READY]
    ready = [row for row in ready if dialect_of(row.version) != CODED]
    now = store.now()
    alive = [row for row in await store.workers() if row.until > now and not row.draining] if ready else []
    found: dict[RunId, tuple[str, ...]] = {}
    needs: dict[tuple[str, str], frozenset[str]] = {}
    for row in ready if alive else ():
        version = (row.flow, row.version)
        if version not in needs:
            stored = await store.flow(*version)
            needs[version] = frozenset() if stored is None else requirements_in(stored.graph)
        here = [each for each in alive if each.lanes is None or row.lane in each.lanes]
        wanted = needs[version]
        if wanted and not any(wanted <= frozenset(each.offers) for each in here):
            somewhere = frozenset(word for each in here for word in each.offers)
            # Each word may be somewhere, but not all of them in one place.
            found[row.id] = tuple(sorted(wanted - somewhere or wanted))
    return found


def serves(row: WorkerRow, version: str) -> bool:
    """The program of a stored document is built by any worker that has what the document names."""
    return version in row.versions if dialect_of(version) == CODED else version not in row.lacking


def means_for(missing: Iterable[str]) -> str:
    """How to give a worker what runs need: `agent:codex`, `provider:openai`."""
    return ", ".join(dict.fromkeys(_MEANS.get(word.partition(":")[0], word) for word in missing))
