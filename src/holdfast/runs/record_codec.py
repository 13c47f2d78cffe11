"""Converts a record's body to its stored payload and back: exact values, spill, digest, events."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from holdfast.checkpoint import (
    Blob,
    TypeRegistry,
    decode_body,
    encode_body,
    pack,
    record_digest,
    spill,
    unpack,
)
from holdfast.checkpoint.envelope import encode_packed
from holdfast.checkpoint.shapes import kind_of
from holdfast.checkpoint.size_limit import require_step_size
from holdfast.errors import CheckpointCorruptError, SchemaTooNewError, ValueTooLargeError
from holdfast.model.events import count_events
from holdfast.model.record_bodies import (
    ATTEMPT_REASONS,
    BODY_TYPES,
    AskedBody,
    AttemptBody,
    ChunkBody,
    CreatedBody,
    IntentBody,
    ShortStepBody,
    SnapshotBody,
    StepBody,
    SubstepBody,
)
from holdfast.model.secrets import Paths, register_secrets
from holdfast.telemetry import log
from holdfast.types.ids import DEFAULT_TENANT, RunId
from holdfast.types.record import Body, Kind, Op, Record, Side
from holdfast.types.text import clean_text
from holdfast.types.value import BlobRef, FrozenDict, FrozenList

_ANY_FIELDS: dict[type[Body], tuple[str, ...]] = {
    CreatedBody: ("input", "scratch", "artifacts", "options", "lineage", "base"),
    IntentBody: ("facts",),
    SubstepBody: ("value",),
    AskedBody: ("options", "context", "schema", "more"),
    StepBody: ("output", "notes", "walk"),
    SnapshotBody: ("position",),
}
_SPILLS = frozenset({CreatedBody, SubstepBody, StepBody})
_PREPARED = frozenset({SubstepBody, StepBody})
_more_of_step = attrgetter(*StepBody.__struct_fields__[len(ShortStepBody.__struct_fields__) :])
_DEFAULTS = StepBody.__struct_defaults__
# Far below the size from which values are spilled: so a shorter text need not be packed to be measured.
_SHORT = 4096
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_FITS = frozenset({bool, float, type(None)})
_CONTAINERS = frozenset({dict, list, FrozenDict, FrozenList})


def is_as_written(record: Record) -> bool:
    return record.digest == record_digest(
        record.kind, record.at, record.node, record.scope, record.visit, record.outcome, record.payload
    )


class RecordCodec:
    """Encodes and decodes record bodies with one registry of types."""

    def __init__(self, registry: TypeRegistry, secrets: Paths = (), tenant: str = DEFAULT_TENANT) -> None:
        self.registry = registry
        # Paths whose values are hidden wherever this process shows something to this tenant.
        self.secrets = secrets
        self.tenant = tenant
        # Values that were moved to the blob store: the driver notes their places, for snapshots.
        self.spilled: list[tuple[str, str, str, Any, BlobRef]] = []
        # What `prepare` packed, for the record that is encoded next: (operand, packed, blobs).
        self.ready: dict[tuple[int, bool], tuple[Any, Any, list[Blob]]] = {}
        # The last list of operations, if `prepare` found nothing to pack in it.
        self.plain: list[Op] | None = None

    def prepare(self, ops: list[Op], output: Any, where: str = "the output") -> None:
        """Pack what a handler returned before the engine counts on it; encoding its record then cannot fail.

        Raises ValueNotStorableError and ValueTooLargeError, naming the place.
        """
        size = 0
        plain = True
        for _, key, op, operand in ops:
            if not key.isascii():
                pack(key, self.registry, f"the name {key!r}")
            if not _surely_fits(operand):
                plain = False
                size += self._prepare(operand, key, may_leave=op == "set")
        self.plain = ops if plain else None
        if output is not None and not _surely_fits(output):
            size += self._prepare(output, where, may_leave=True)
        if size:
            require_step_size(size)

    def _prepare(self, operand: Any, where: str, *, may_leave: bool) -> int:
        packed = pack(operand, self.registry, where)
        blobs: list[Blob] = []
        if may_leave:
            try:
                packed, blobs = spill(packed)
            except ValueTooLargeError as error:
                raise ValueTooLargeError(
                    f"{where}: {error.message}", hint=error.hint, **error.facts
                ) from None
            size = 0
        else:
            content = encode_packed(packed)
            packed, size = msgspec.Raw(content), len(content)
        # The operand is kept as well: without a reference Python could reuse its id for another object.
        self.ready[id(operand), may_leave] = (operand, packed, blobs)
        return size

    def encode(self, record: Record, body: Any, term: int) -> list[Blob]:
        """Fill in payload, digest, term and event count. Returns the blobs to put before the record."""
        if self.secrets:
            register_secrets(body_parts(body), self.secrets, self.tenant)
        blobs: list[Blob] = []
        packed: Any
        if body.__class__ is not StepBody:
            packed = self._packed(body, blobs)
        # The common step has short plain values only.
        elif body.ops is self.plain and body.output is body.notes is body.walk is None:
            packed = _shortened(body)
        else:
            packed = _shortened(self._packed_step(record, body, blobs))
        record.payload = payload = encode_body(packed)
        record.term = term
        record.events = count_events(record.kind, body, listed=record.listed)
        record.digest = record_digest(
            record.kind, record.at, record.node, record.scope, record.visit, record.outcome, payload
        )
        if blobs:
            if record.side is None:
                record.side = Side()
            record.side.blobs = [blob.ref.digest for blob in blobs]
        return blobs

    def dump_body(self, body: Any) -> bytes:
        """The body whole, with no value moved elsewhere; `load_body` reads it."""
        registry, kind = self.registry, body.__class__
        if kind is StepBody:
            ops = [(p, k, o, pack(v, registry)) for p, k, o, v in body.ops]
            body = msgspec.structs.replace(body, ops=ops)
        elif kind is ChunkBody:
            body = msgspec.structs.replace(
                body, items=[(what, pack(data, registry)) for what, data in body.items]
            )
        kept = {name: pack(getattr(body, name), registry) for name in _ANY_FIELDS.get(kind, ())}
        return encode_body(msgspec.structs.replace(body, **kept))

    def load_body(self, kind: int, raw: bytes) -> Any:
        return self.unpack_body(decode_body(raw, BODY_TYPES[kind]))

    def clear(self) -> None:
        """Discard what `prepare` kept: the record is encoded."""
        self.plain = None
        if self.ready:
            self.ready.clear()

    def _packed(self, body: Any, blobs: list[Blob]) -> Any:
        kind: type[Any] = body.__class__
        if kind is ChunkBody:
            packed = [(what, pack(data, self.registry)) for what, data in body.items]
            return ChunkBody(packed, body.inside, body.lines)
        fields = _ANY_FIELDS.get(kind)
        if fields is None:
            return body
        changed = {
            name: self._value(getattr(body, name), None if name == "base" else kind, blobs) for name in fields
        }
        return msgspec.structs.replace(body, **changed)

    def _packed_step(self, record: Record, body: StepBody, blobs: list[Blob]) -> StepBody:
        registry = self.registry
        ops: list[Any] = []
        for partition, key, op, operand in body.ops:
            # A reducer needs the value when it is applied again: only plain sets may be moved to the blob
            # store.
            may_leave = op == "set"
            ready = self.ready.get((id(operand), may_leave)) if self.ready else None
            if ready is not None:
                _, value, spilled = ready
            else:
                value, spilled = pack(operand, registry), None
            if may_leave:
                if spilled is None:
                    value, spilled = spill(value)
                if spilled:
                    blobs += spilled
                    self.spilled.append((record.scope, partition, key, operand, spilled[0].ref))
            ops.append((partition, key, op, value))
        output = body.output
        if output is not None:
            output = self._value(output, StepBody, blobs)
        return StepBody(
            ops,
            body.moves,
            body.duration,
            output,
            body.promoted,
            body.usage,
            body.error,
            None if body.notes is None else pack(body.notes, registry),
            body.routes,
            None if body.walk is None else pack(body.walk, registry),
            body.halts,
        )

    def _value(self, value: Any, kind: type[Body] | None, blobs: list[Blob]) -> Any:
        if value is None or (kind_of(value) in _CONTAINERS and not value):
            return value
        ready = self.ready.get((id(value), True)) if self.ready and kind in _PREPARED else None
        if ready is not None:
            blobs += ready[2]
            return ready[1]
        packed = pack(value, self.registry)
        if kind not in _SPILLS:
            return packed
        if kind is CreatedBody and isinstance(packed, dict):
            # Each field separately: a later set of one field then stores nothing else again.
            return {key: self._spilled(part, blobs) for key, part in packed.items()}  # type: ignore[misc]
        return self._spilled(packed, blobs)

    def _spilled(self, packed: Any, blobs: list[Blob]) -> Any:
        value, spilled = spill(packed)
        blobs += spilled
        return value

    def decode(self, record: Record, *, own: bool = False) -> Any:
        """The body of a stored record. Raises CheckpointCorruptError if it does not match its digest,
        SchemaTooNewError for an unknown kind (D-1). `own`: it never left this process since it was encoded
        here, so there is nothing to compare."""
        # Before the payload is decoded: bytes that were changed may still decode, to another value.
        if not own and not is_as_written(record):
            raise CheckpointCorruptError(
                f"record {record.seq} ({kind_name(record)} of node {record.node!r}) does not match its "
                f"digest {record.digest.hex()}: it was damaged after it was written.",
                hint="Holdfast left it as it is. Fork from an earlier checkpoint, or restore a backup.",
                seq=record.seq,
                digest=record.digest.hex(),
            )
        if record.kind not in BODY_TYPES:
            raise SchemaTooNewError(
                f"record {record.seq} is of {kind_name(record)}, which this version does not know.",
                hint="A newer version wrote it: upgrade before you resume this run.",
                seq=record.seq,
            )
        body = self.unpack_body(decode_body(record.payload, BODY_TYPES[record.kind]))
        if isinstance(body, AttemptBody) and body.reason not in ATTEMPT_REASONS:
            raise SchemaTooNewError(
                f"record {record.seq} is an attempt for the reason {clean_text(repr(body.reason), 100)}, "
                "which this version does not know.",
                hint="A newer version wrote it: upgrade before you resume this run.",
                seq=record.seq,
            )
        if self.secrets:
            register_secrets(body_parts(body), self.secrets, self.tenant)
        return body

    def unpack_body(self, body: Any) -> Any:
        registry = self.registry
        if isinstance(body, StepBody):
            body.ops = [(p, k, o, unpack(v, registry)) for p, k, o, v in body.ops]
        elif isinstance(body, ChunkBody):
            body.items = [(what, unpack(data, registry)) for what, data in body.items]
        for name in _ANY_FIELDS.get(body.__class__, ()):
            value = getattr(body, name)
            if value is not None:
                setattr(body, name, unpack(value, registry))
        return body


def body_parts(body: Any) -> list[Any]:
    """The values in a body, each with its name: an operation as a map of one field."""
    parts = [getattr(body, name) for name in _ANY_FIELDS.get(body.__class__, ())]
    if isinstance(body, StepBody):
        parts += [{key: operand} for _, key, _, operand in body.ops]
        # What is added to a list may be one of its items, so it is checked with the paths of items too.
        parts += [{key: [operand]} for _, key, op, operand in body.ops if op != "set"]
    elif isinstance(body, ChunkBody):
        parts += [data for _, data in body.items]
    return parts


def _shortened(body: StepBody) -> Body:
    """Without the fields at its end if all of them have their defaults, as in most steps."""
    if _more_of_step(body) == _DEFAULTS:
        return ShortStepBody(body.ops, body.moves, body.duration)
    return body


def _surely_fits(value: Any) -> bool:
    """Known without examining the value's content."""
    kind = kind_of(value)
    if kind is str:
        return len(value) <= _SHORT and value.isascii()
    if kind is int:
        return _INT_MIN <= value <= _INT_MAX
    return kind in _FITS


def log_records(run: RunId, records: list[Record]) -> None:
    """Logs what became durable, by its columns: no value of the user's."""
    for record in records:
        about = {"run": run, "node": record.node, "scope": record.scope, "visit": record.visit}
        more = {"attempt": record.attempt, "seq": record.seq, "outcome": record.outcome}
        log.debug("%s recorded", kind_name(record), extra={**about, **more})


RecordDecoder = Callable[[Record], Any]


def kind_name(record: Record) -> str:
    try:
        return Kind(record.kind).name
    except ValueError:
        return f"kind {record.kind}"
