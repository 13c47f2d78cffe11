"""Work that no live worker takes: ready runs by lane and version, and schedules by flow."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.model.fingerprint import CODED, dialect_of
from holdfast.types.fleet import FleetFigures, ScheduledFlow, VersionBacklog, WorkerRow


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


def serves(row: WorkerRow, version: str) -> bool:
    """The program of a stored document is built by any worker that has what the document names."""
    return version in row.versions if dialect_of(version) == CODED else version not in row.lacking
