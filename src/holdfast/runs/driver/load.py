"""Loads a position from the journal: the newest snapshot, and the records after it (D-27)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from holdfast.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.model.apply import apply_record
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import Graph
from holdfast.model.growing_lists import Segment
from holdfast.model.position import Position
from holdfast.model.record_bodies import CreatedBody, SnapshotBody
from holdfast.model.snapshot import Loader, left_in_journal, load_position
from holdfast.runs.blobs import BlobStore
from holdfast.runs.record_codec import RecordCodec
from holdfast.store.protocols import Store
from holdfast.store.rows import Capability, RunRow
from holdfast.types.ids import RunId
from holdfast.types.record import Kind, Move, Record
from holdfast.types.reducers import GROWS

_STARTS = (Kind.created, Kind.snapshot)
_BEGINS = ("S", "Z", "O")  # the moves that start nodes of all kinds, and open children
SHORT = 64  # records that are read at once, without asking first where the newest snapshot is


class LoadedRun:
    """A position, and what it cost to get there."""

    __slots__ = ("pos", "since_snapshot")

    def __init__(self, pos: Position, since_snapshot: int) -> None:
        self.pos = pos
        self.since_snapshot = since_snapshot


async def load(
    store: Store,
    codec: RecordCodec,
    graph: Graph,
    run: RunId,
    *,
    blobs: BlobStore,
    upto: int | None = None,
    row: RunRow | None = None,
) -> LoadedRun:
    """The position of the run after record `upto` (default: its last). No user code runs. `row`: if known.

    Large values stay references, except those that a map or a sub-flow started from: `blobs` has them."""
    if upto is None and row is not None and row.head - row.horizon < SHORT:
        records = _from_snapshot(await store.read(run, first=row.horizon, last=row.head))
    else:
        last = upto if upto is not None else 1 << 31
        first = await store.last_snapshot(run, last)
        records = [] if first is None else await store.read(run, first=first, last=upto)
    if not records:
        raise CheckpointNotFoundError(f"run {run} has no checkpoint at or before {upto}.")
    blobs = await blobs.of_run(run)
    pos = await begin(graph, codec, run, records[0], store, blobs)
    for record in records[1:]:
        await fetch_and_apply(graph, pos, record, decode_body(codec, run, record), blobs, codec)
    if upto is not None and pos.head != upto:
        raise CheckpointNotFoundError(f"run {run} has no record {upto}; its last one is {pos.head}.")
    return LoadedRun(pos, len(records) - 1)


async def begin(
    graph: Graph, codec: RecordCodec, run: RunId, record: Record, store: Store, blobs: BlobStore
) -> Position:
    """`start_from`, with the large values loaded that maps and sub-flows read or reducers add to."""
    body = decode_body(codec, run, record)
    if isinstance(body, CreatedBody) and body.base is None and _has_parents(graph):
        await blobs.fill_body(body, codec.registry)
    pos = start_from(graph, codec, run, record, await segment_loader(store, codec, run, body), body)
    # A reducer adds to the value that is there: a reference to a blob cannot be added to.
    if _reduces(graph):
        await blobs.fill_state(pos, codec.registry)
    return pos


def _reduces(graph: Graph) -> bool:
    return bool(graph.spec.reducers) or any(map(_reduces, graph.subgraphs.values()))


async def fetch_and_apply(
    graph: Graph, pos: Position, record: Record, body: Any, blobs: BlobStore, codec: RecordCodec
) -> None:
    """Apply a record. If it starts a map, a sub-flow or a branch, the values that these read are fetched
    before."""
    if _starts_parent(graph, pos, getattr(body, "moves", None) or ()):
        await blobs.fill_state(pos, codec.registry)
        await blobs.fill_body(body, codec.registry)
    apply_record(graph, pos, record, body)


def _has_parents(graph: Graph) -> bool:
    return any(node.kind in PARENTS for node in graph.nodes)


def _starts_parent(graph: Graph, pos: Position, moves: Iterable[Move]) -> bool:
    for what, path, node, _ in moves:
        scope = pos.scopes.get(path)
        if what not in _BEGINS or scope is None:
            continue  # of a child that opens in this record: loaded when it opened
        outer = pos.scope_graph(graph, scope)
        found = outer.nodes[node]
        if what != "O" and found.kind in PARENTS:
            return True
        if what == "O" and (found.parallel or _has_parents(outer.subgraphs[found.body])):
            return True
    return False


def _from_snapshot(records: list[Record]) -> list[Record]:
    """From the newest record that a position can start from."""
    first = max((i for i, r in enumerate(records) if r.kind in _STARTS), default=len(records))
    return records[first:]


def decode_body(codec: RecordCodec, run: RunId, record: Record) -> Any:
    try:
        return codec.decode(record)
    except CheckpointCorruptError as error:
        raise CheckpointCorruptError(f"run {run}: {error.message}", hint=error.hint, **error.facts) from error


async def segment_loader(store: Store, codec: RecordCodec, run: RunId, *bodies: Any) -> Loader:
    """Loads what records added to a list that a snapshot among `bodies` names: when it is read, not when the
    run is loaded. A store that cannot read in place is asked for these records now."""
    between = partial(store.read_now, run)
    if Capability.inline not in store.capabilities:
        # A list is filled while a handler reads an attribute, where nothing can be awaited.
        between = await _read_ahead(store, run, bodies)
    return items_between(codec, run, between)


def items_between(codec: RecordCodec, run: RunId, between: Callable[..., list[Record]]) -> Loader:
    """The same for any source of the records from `first` to `last`."""

    def load_items(scope: str, partition: str, key: str, segment: Segment) -> list[Any]:
        found: list[Any] = []
        for record in (r for a, b in segment.runs for r in between(first=a, last=b)):
            if record.kind != Kind.step or record.scope != scope:
                continue
            for p, k, op, operand in decode_body(codec, run, record).ops:
                if p == partition and k == key and op in GROWS:
                    found += operand if isinstance(operand, (list, tuple)) else (operand,)
        return found

    return load_items


async def _read_ahead(store: Store, run: RunId, bodies: Iterable[Any]) -> Callable[..., list[Record]]:
    snapshots = [body for body in bodies if isinstance(body, SnapshotBody)]
    ranges = {found for body in snapshots for found in left_in_journal(body.position)}
    read = {(first, last): await store.read(run, first=first, last=last) for first, last in ranges}

    def between(*, first: int, last: int) -> list[Record]:
        return read[first, last]

    return between


def start_from(
    graph: Graph,
    codec: RecordCodec,
    run: RunId,
    record: Record,
    load: Loader | None = None,
    body: Any = None,
) -> Position:
    """The position that a created or snapshot record contains. `body`: if it was decoded already."""
    body = decode_body(codec, run, record) if body is None else body
    if isinstance(body, SnapshotBody):
        pos = load_position(body.position, load=load)
        # The time of a run never goes back, although the clock of another worker may be behind.
        pos.head, pos.at = record.seq, max(pos.at, record.at)
        return pos
    if not isinstance(body, CreatedBody) or record.kind != Kind.created:
        raise CheckpointCorruptError(f"run {run}: record {record.seq} is neither a start nor a snapshot")
    if body.base is not None:
        # A fork starts from a copy of the position of its source: it needs no record of that run.
        pos = load_position(body.base)
        pos.run, pos.head, pos.at = run, record.seq, record.at
        return pos
    pos = Position(run)
    pos.head = record.seq - 1
    apply_record(graph, pos, record, body)
    return pos
