"""The version of its flow that a run had at each of its records, and how it is read there.

A migrated run has a history of two graphs: records before the migration are read with the old one, which the
store keeps, later ones with the new one (D-34).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint.read_without_code import LenientRegistry
from holdfast.errors import FlowNotFoundError
from holdfast.model.fingerprint import decode_graph
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATION
from holdfast.runs.record_codec import RecordCodec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.runs.service_protocol import JournalAccess
    from holdfast.store.rows import RunRow


class RunReader(msgspec.Struct, frozen=True):
    """What is needed to read a run: the graph of its version, and the codec of its values.

    `exact` is False if the flow's code is not loaded here: its own types are then shown as plain data.
    """

    graph: Graph
    codec: RecordCodec
    exact: bool

    def at(self, _seq: int) -> RunReader:
        """As `RunReaders.at`, for a run that was always on one version."""
        return self


async def reader_of(service: JournalAccess, row: RunRow) -> RunReader:
    """For the run's present version: its program if that is loaded, else the stored graph."""
    return await reader_for(service, row, row.version)


async def reader_for(service: JournalAccess, row: RunRow, version: str) -> RunReader:
    """No user code is needed. Raises FlowNotFoundError if the version is neither loaded nor stored."""
    runtime, flow = service.runtime, row.flow
    program = runtime.programs.get(version)
    if program is not None:
        return RunReader(program.graph, runtime.codec_for(program, row.tenant), True)
    stored = await service.store.flow(flow, version)
    if stored is None:
        raise FlowNotFoundError(
            f"version {version} of flow {flow!r} is neither loaded here nor stored.",
            hint="Load the flow's code; the run waits until then.",
            flow=flow,
            version=version,
        )
    graph = Graph(decode_graph(stored.graph))
    return RunReader(graph, RecordCodec(LenientRegistry(), graph.secrets, row.tenant), False)


class VersionSpan(msgspec.Struct, frozen=True):
    """From this record on the run was on this version."""

    first: int
    version: str


async def spans_of(service: JournalAccess, row: RunRow) -> list[VersionSpan]:
    """Oldest first, from what is left of the journal. For a run that was never migrated nothing is read."""
    found: list[VersionSpan] = []
    seq, version = row.migrated, row.version
    while seq > row.horizon:
        found.append(VersionSpan(seq, version))
        note = await migration_note(service, row, seq)
        seq, version = note["before"], note["from"]
    found.append(VersionSpan(row.horizon, version))
    return found[::-1]


async def migration_note(service: JournalAccess, row: RunRow, seq: int) -> dict[str, Any]:
    """What the record of a migration says about itself."""
    (record,) = await service.store.read(row.id, first=seq, last=seq)
    return dict(RecordCodec(LenientRegistry()).decode(record).position[MIGRATION])


def span_at(spans: Sequence[VersionSpan], seq: int) -> VersionSpan:
    return next((span for span in reversed(spans) if span.first <= seq), spans[0])


async def version_at(service: JournalAccess, row: RunRow, seq: int) -> str:
    return row.version if seq >= row.migrated else span_at(await spans_of(service, row), seq).version


async def reader_at(service: JournalAccess, row: RunRow, seq: int) -> RunReader:
    """How the run is read at one of its records."""
    return await reader_for(service, row, await version_at(service, row, seq))


class RunReaders:
    """Readers of a whole history: each record with the one of the version that it was written on."""

    def __init__(self, spans: Sequence[VersionSpan], readers: dict[str, RunReader]) -> None:
        self._spans = spans
        self._readers = readers

    def at(self, seq: int) -> RunReader:
        return self._readers[self.version_at(seq)]

    def version_at(self, seq: int) -> str:
        return span_at(self._spans, seq).version


async def readers_of(service: JournalAccess, row: RunRow, exact: RunReader | None = None) -> RunReaders:
    """`exact`: the reader of the values, for all versions."""
    spans = await spans_of(service, row)
    found = {span.version: await reader_for(service, row, span.version) for span in spans}
    if exact is not None:
        found = {v: RunReader(one.graph, exact.codec, exact.exact) for v, one in found.items()}
    return RunReaders(spans, found)
