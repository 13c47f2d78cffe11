"""Replay: a run's decisions made again from its journal, and whether they lead to the same position.

Nothing is written, no user code runs (D-26): outcomes, routes, answers and timers are read from the records.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.checkpoint.read_without_code import LenientRegistry
from holdfast.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED
from holdfast.model.position import Position
from holdfast.model.snapshot import dump_position
from holdfast.runs.driver.load import decode_body, load, segment_loader
from holdfast.runs.driver.repair import FELL_BACK
from holdfast.runs.history.retrace import Pair, ReplayDifference, RetraceResult, retrace
from holdfast.runs.history.versions import RunReader, RunReaders, readers_of
from holdfast.types.record import Kind, Record

if TYPE_CHECKING:
    from holdfast.runs.service_protocol import RunAccess
    from holdfast.store.rows import RunRow


class Replay(msgspec.Struct, kw_only=True):
    """What a replay found.

    `same`: every decision was made again as it was written, and leads to the same place: `replayed` is the
    digest of where the decisions lead, `recorded` of where the journal leads. `replayed` is None where they
    cannot be compared: another version decided, or the last record lies amid a decision.
    With a difference there is nowhere to compare: both are left open.
    `given`: records that were read as the start (a fork's, a pruned run's) or do not count (a fall-back).
    `exact` False: values of the flow's own types were read as plain data, because its code is not loaded.
    """

    run: str
    flow: str
    version: str
    against: str = ""
    upto: int
    records: int
    given: int
    decisions: int
    recorded: str
    replayed: str | None
    exact: bool
    difference: ReplayDifference | None = None

    @property
    def same(self) -> bool:
        return self.difference is None and self.replayed in (None, self.recorded)


async def replay(
    service: RunAccess, run: str, *, upto: int | None = None, against: Graph | None = None, version: str = ""
) -> Replay:
    """Raises CheckpointNotFoundError for a record that does not exist, CheckpointCorruptError for damage.
    `against`: another version's graph, which decides; the first record where it decides differently is named.
    """
    row = await service.get(run)
    last = _last(row, upto)
    readers = await readers_of(service, row)
    reader = readers.at(last)
    found = await _retraced(service, row, readers, await _journal(service, row, readers, last), against)
    registry = reader.codec.registry
    # A journal that the engine would not write need not lead to any position.
    recorded = "" if found.difference is not None else await _recorded(service, row, reader, last)
    settled = found.difference is None and found.whole and against is None
    return Replay(
        run=row.id,
        flow=row.flow,
        version=row.version,
        against=version,
        upto=last,
        records=found.records,
        given=found.given,
        decisions=found.decisions,
        recorded=recorded,
        replayed=place(found.pos, registry) if settled else None,
        exact=not (isinstance(registry, LenientRegistry) and registry.met),
        difference=found.difference,
    )


async def _recorded(service: RunAccess, row: RunRow, reader: RunReader, last: int) -> str:
    there = await load(
        service.store, reader.codec, reader.graph, row.id, blobs=service.runtime.blobs, upto=last
    )
    await service.runtime.blobs.materialise(there.pos, reader.codec.registry)
    return place(there.pos, reader.codec.registry)


def _last(row: RunRow, upto: int | None) -> int:
    if upto is None:
        return row.head
    if not row.horizon <= upto <= row.head:
        raise CheckpointNotFoundError(
            f"run {row.id} has the records {row.horizon} to {row.head}, not {upto}.", run=row.id, seq=upto
        )
    return upto


async def _retraced(
    service: RunAccess, row: RunRow, readers: RunReaders, journal: list[Pair], against: Graph | None
) -> RetraceResult:
    """Version by version: each migration starts again, and its result is taken as given."""
    starts = [i for i, (record, _) in enumerate(journal) if i == 0 or record.outcome == MIGRATED]
    found: RetraceResult | None = None
    for first, end in pairwise([*starts, len(journal)]):
        then = readers.at(journal[first][0].seq)
        loader = await segment_loader(
            service.store, then.codec, row.id, *(body for _, body in journal[first:end])
        )
        graph = against or then.graph
        part = retrace(graph, row.id, journal[first:end], journal_graph=then.graph, load=loader)
        if found is not None:
            part.decisions += found.decisions
            part.records += found.records
            part.given += found.given
        found = part
        if part.difference is not None:
            break
    assert found is not None
    return found


async def _journal(service: RunAccess, row: RunRow, readers: RunReaders, last: int) -> list[Pair]:
    records = await service.store.read(row.id, first=row.horizon, last=last)
    _require_all(row, records, last)
    void = _void(readers.at(last), row, records)
    counted = [r for r in records if not any(low <= r.seq < high for low, high in void)]
    found: list[Pair] = []
    for record in counted:
        reader = readers.at(record.seq)
        found.append((record, await _whole(service, reader, decode_body(reader.codec, row.id, record))))
    return found


def _require_all(row: RunRow, records: list[Record], last: int) -> None:
    there = {record.seq for record in records}
    missing = next((seq for seq in range(row.horizon, last + 1) if seq not in there), None)
    if missing is not None:
        raise CheckpointCorruptError(
            f"run {row.id}: record {missing} is missing.", hint="Restore a backup.", seq=missing
        )


def _void(reader: RunReader, row: RunRow, records: list[Record]) -> list[tuple[int, int]]:
    lines = [r for r in records if r.kind == Kind.attempt and r.outcome == FELL_BACK]
    return [(int(decode_body(reader.codec, row.id, r).token), r.seq) for r in lines]


async def _whole(service: RunAccess, reader: RunReader, body: Any) -> Any:
    """With large values put back into their place: conditions read them."""
    return await service.runtime.blobs.fill_body(body, reader.codec.registry)


def place(pos: Position, registry: TypeRegistry) -> str:
    """A digest of a run's position; the same with the flow's code loaded and without."""
    dumped = dump_position(pos)
    # Sums may come back from a snapshot as floats.
    dumped["totals"] = {name: float(total) for name, total in pos.totals.items()}
    stored = msgspec.msgpack.encode(pack(dumped, registry))
    plain = unpack(msgspec.msgpack.decode(stored), LenientRegistry())
    return sha256(repr(_sorted(plain)).encode()).hexdigest()[:32]


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted(((repr(k), _sorted(v)) for k, v in value.items()), key=lambda pair: pair[0])  # type: ignore[misc]
    if isinstance(value, (list, tuple)):
        return [_sorted(part) for part in value]  # type: ignore[misc]
    # Python writes no decimal of more than 4,300 digits.
    return hex(value) if type(value) is int else value
