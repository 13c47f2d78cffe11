"""What workflow and activities tell each other, as bytes.

The workflow has no code of the flow: values of its types stay as they were stored, and conditions read their
fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum, Flag, IntEnum, IntFlag, StrEnum
from functools import partial
from types import NoneType
from typing import Any, Final, cast

import msgspec

from holdfast.checkpoint import decode_body, encode_body, pack, unpack
from holdfast.checkpoint.envelope import decode_packed, encode_packed, pack_envelope
from holdfast.checkpoint.read_without_code import Opaque, OpaqueRegistry
from holdfast.checkpoint.registry import RegisteredType, TypeRegistry
from holdfast.engine.messages import EvidenceArrived, HandlerFinished, SubstepDoubted, SubstepEvidence
from holdfast.errors import CheckpointCorruptError
from holdfast.model.graph import HoldSpec, RetryPolicy
from holdfast.model.position import Exec, Position, new_scope
from holdfast.model.record_bodies import BODY_TYPES, ErrorInfo, Usage
from holdfast.model.snapshot import dump_position, load_position
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.record import Body, Op, Record, Side

PROTOCOL: Final = 5
"""The number of the rules by which new workflows decide. A release that changes a decision, or what an
activity is given, counts it up and keeps the old rule for workflows that began with it:

1. The lease of a run has term 1, which activities are not told.
2. Activities are told the term of the lease: a run may be moved, and resumed after it failed.
3. Activities are given only what they cannot know, and answers are fitted as they are read.
4. The members of enums are known: a condition compares them as it does where the flow's code is. Items of a
   map do not each get a large input of their run: activities read it from the store.
5. Such items have an activity of their own, which earlier releases do not have, and it also reads what items
   of documents and branches of pipelines have as their own input, if that is the run's.

Workers of several releases poll one queue. Those that do not know the protocol of a run do not decide for it,
but they are given its activities. One that an earlier release would misread has a name of its own.
"""
NODE: Final = "holdfast.node"
NODE_APART: Final = "holdfast.node_apart"
"""Of a node whose call is without the input of its run (from protocol 5 on)."""
MOST_ITEMS: Final = 1_000
"""Of a map that begin together: the workflow decides about all of them in one task, within two seconds."""


class EnumMembers(msgspec.Struct, array_like=True, frozen=True):
    """`kind`: of `ENUM_KINDS`."""

    kind: str
    members: dict[str, str | int | float | bool | None]


class RunStart(msgspec.Struct, kw_only=True):
    """What a workflow begins with: a new run, a fork, or the rest of a long one."""

    run: str
    tenant: str
    flow: str
    version: str
    key: int  # of the run's row
    engine: str  # who holds the lease
    position: bytes
    typed: bool  # values from outside are fitted to the state's types
    heartbeat: float
    serial: bool = False  # its nodes draw on one budget
    entries: int = 0  # activities of nodes so far
    lost: dict[str, int] = {}  # how often each execution has lost its worker
    protocol: int = 1  # of the rules by which it decides
    term: int = 1  # of the lease
    mail: bool = False  # it begins with a message that waits for it
    queued: bool = False  # it has no place under its limit
    enums: dict[str, EnumMembers] = {}  # of the flow's types, by their names

    @property
    def is_brief(self) -> bool:
        """Activities are given only what they cannot know."""
        return self.protocol >= 3


class Draft(msgspec.Struct, array_like=True):
    """A record before it is encoded."""

    seq: int
    kind: int
    at: int
    node: str
    visit: int
    attempt: int
    scope: str
    effect: str
    outcome: str
    listed: bool
    body: bytes
    side: bytes = b""


class FirstUnwritten(msgspec.Struct, array_like=True):
    """As protocol 1 writes it."""

    run: str
    key: int
    tenant: str
    flow: str
    version: str
    engine: str
    drafts: list[Draft]


class Unwritten(FirstUnwritten, array_like=True):
    """Records that are not known to be in the store, with where they go. In a brief run all but the engine,
    the records and the term is in the run's row, which the activity reads."""

    term: int = 1


class NodeCall(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`fresh`: no activity of this execution was entered before, and it may be repeated. `apart`: the
    position is without the input of the run, which the store has."""

    unwritten: Unwritten
    position: bytes
    scope: str = ""
    node: int
    entry: int = 0  # counts the activities of the run's nodes
    probe: bool = False
    fresh: bool = False
    apart: bool = False


class ExecNote(msgspec.Struct, array_like=True):
    """A call of a handler's context that changes its execution. `what`: record, ask, sleep, back_off,
    continue or branches."""

    what: str
    kind: int = 0
    body: bytes = b""
    effect: str = ""
    outcome: str = ""
    listed: bool = False
    key: str = ""
    ordinal: int = 0
    name: str = ""
    wake: int = 0
    spec: bytes = b""
    context: bytes = b""
    code: str = ""
    error: ErrorInfo | None = None
    usage: Usage | None = None


class NodeReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Neither `finished` nor `doubted`: the handler waits. `again`: it is entered again at once; `waits`:
    when something has happened in the run that may have changed its budget; `unserved`: later, by a worker
    that has what it needs."""

    notes: list[ExecNote] = []
    finished: HandlerFinished | None = None
    doubted: SubstepDoubted | None = None
    again: bool = False
    waits: bool = False
    unserved: bool = False


class LateReport(msgspec.Struct, kw_only=True):
    """`EvidenceArrived` with packed values."""

    intent: int
    inbox: int
    finished: HandlerFinished | None = None
    substep: SubstepEvidence | None = None


class ProjectRequest(msgspec.Struct, kw_only=True):
    """`idle`: the status of a run that now waits."""

    unwritten: Unwritten
    idle: str = ""


class MailRequest(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`position`: of a run that asks something, so that answers are fitted as they are read."""

    unwritten: Unwritten
    taken: list[int] = []
    position: bytes = b""


class ExecPlace(msgspec.Struct, kw_only=True):
    unwritten: Unwritten
    scope: str
    node: int
    visit: int
    entry: int = 0


class FitRequest(msgspec.Struct, kw_only=True):
    """Values from outside, to be fitted to the state's types: the changes of an answer, a map or a sub-flow
    (`ops`), or without them the items that a map or sub-flow passes on."""

    unwritten: Unwritten
    position: bytes
    scope: str
    node: int
    ops: list[Op] | None = None


class FitReply(msgspec.Struct, kw_only=True):
    ops: list[Op] = []
    error: ErrorInfo | None = None


class Mail(msgspec.Struct, array_like=True):
    """Messages of a run by their type, and for a brief run what its step asks about them, in order:
    (question, reply)."""

    messages: list[tuple[str, Any]] = []
    fits: list[tuple[bytes, FitReply]] = []


_LATER: Final[dict[type, tuple[str, ...]]] = {
    NodeCall: ("fresh", "apart"),
    MailRequest: ("position",),
}


def encode_request(request: msgspec.Struct, *, brief: bool) -> bytes:
    """What an activity is given: in a run that is not brief, the same bytes as in earlier versions."""
    if brief:
        return encode_body(request)
    later = _LATER.get(type(request), ())
    names = [name for name in request.__struct_fields__ if name not in later]
    return pack_envelope(encode_packed({name: getattr(request, name) for name in names}))


class RecordValue(Opaque, Mapping[str, Any]):
    """An instance of a type of the flow, where the flow's code is not loaded."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    __eq__ = Opaque.__eq__
    __hash__ = Opaque.__hash__

    def __str__(self) -> str:
        """Of a type without fields."""
        return str(self.parts)

    @property
    def _fields(self) -> Mapping[str, Any]:
        parts: object = self.parts
        return cast("Mapping[str, Any]", parts) if isinstance(parts, Mapping) else {}


ENUM_KINDS: Final[dict[str, Callable[[str, list[tuple[str, Any]]], type[Enum]]]] = {
    "StrEnum": StrEnum,
    "IntEnum": IntEnum,
    "IntFlag": IntFlag,
    "Flag": Flag,
    "str": partial(Enum, type=str),
    "int": partial(Enum, type=int),
    "float": partial(Enum, type=float),
    "Enum": Enum,
}
"""How an enum is made again where its code is not; the first kind that fits counts."""


def enums_of(registry: TypeRegistry) -> dict[str, EnumMembers]:
    """Those whose values are plain data. Members of others are compared with each other alone."""
    found: dict[str, EnumMembers] = {}
    for name in registry.names():
        cls = registry.named(name).cls
        if not issubclass(cls, Enum):
            continue
        members = {member: each.value for member, each in cls.__members__.items()}
        if all(type(value) in (str, int, float, bool, NoneType) for value in members.values()):
            found[name] = EnumMembers(_kind_of(cls), members)
    return found


def _kind_of(cls: type[Enum]) -> str:
    names = [base.__name__ for base in cls.__mro__[1:]]
    return next(kind for kind in ENUM_KINDS if kind in names)


class RecordRegistry(OpaqueRegistry):
    """Reads every type; what was read is written back to the same bytes."""

    __slots__ = ()

    def __init__(self, enums: Mapping[str, EnumMembers] | None = None) -> None:
        super().__init__()
        for name, each in (enums or {}).items():
            self.register(ENUM_KINDS[each.kind](name, list(each.members.items())), name)

    def named(self, name: str) -> RegisteredType:
        entry = self._by_name.get(name)
        if entry is None:
            cls = type(name, (RecordValue,), {"__slots__": ()})
            entry = self._by_name[name] = self._by_type[cls] = RegisteredType(name, cls, _parts, cls)
        return entry


def _parts(value: Opaque) -> Any:
    return value.parts


class Wire:
    """Encodes and decodes with one registry of types."""

    def __init__(self, registry: TypeRegistry) -> None:
        self.registry = registry
        self.codec = RecordCodec(registry)

    def position(self, pos: Position) -> bytes:
        return self.dump(dump_position(pos))

    def view(self, pos: Position) -> bytes:
        """A part of a position, without what an activity knows."""
        return self.dump(dump_position(msgspec.structs.replace(pos, run=""), brief=True))

    def load(self, raw: bytes, run: str = "") -> Position:
        """`run`: whose, where a view does not say it."""
        pos = load_position(self.read(raw))
        pos.run = pos.run or run
        return pos

    def draft(self, record: Record, body: Body) -> Draft:
        side = b"" if record.side is None else msgspec.msgpack.encode(record.side)
        return Draft(
            record.seq, record.kind, record.at, record.node, record.visit, record.attempt, record.scope,
            record.effect, record.outcome, record.listed, self.codec.dump_body(body), side,
        )  # fmt: skip

    def record(self, draft: Draft) -> tuple[Record, Any]:
        side = msgspec.msgpack.decode(draft.side, type=Side) if draft.side else None
        record = Record(
            draft.seq, draft.kind, draft.at, 0, draft.node, draft.visit, draft.attempt, draft.scope,
            draft.effect, draft.outcome, draft.listed, 0, b"", b"", side,
        )  # fmt: skip
        return record, self.codec.load_body(draft.kind, draft.body)

    def reply(self, reply: NodeReply) -> bytes:
        if reply.finished is not None:
            reply = msgspec.structs.replace(reply, finished=self._packed(reply.finished))
        return encode_body(reply)

    def read_reply(self, raw: bytes) -> NodeReply:
        reply = decode_body(raw, NodeReply)
        if reply.finished is not None:
            reply.finished = self._unpacked(reply.finished)
        return reply

    def _packed(self, finished: HandlerFinished) -> HandlerFinished:
        return msgspec.structs.replace(
            finished,
            ops=self.pack_ops(finished.ops),
            output=pack(finished.output, self.registry),
            notes=pack(finished.notes, self.registry),
        )

    def _unpacked(self, finished: HandlerFinished) -> HandlerFinished:
        return msgspec.structs.replace(
            finished,
            ops=self.unpack_ops(finished.ops),
            output=unpack(finished.output, self.registry),
            notes=unpack(finished.notes, self.registry),
        )

    def late(self, message: EvidenceArrived) -> bytes:
        found, report = message.evidence, LateReport(intent=message.intent, inbox=message.inbox)
        if isinstance(found, HandlerFinished):
            report.finished = self._packed(found)
        elif found is not None:
            report.substep = msgspec.structs.replace(found, value=pack(found.value, self.registry))
        return encode_body(report)

    def read_late(self, raw: bytes) -> EvidenceArrived:
        report, found = decode_body(raw, LateReport), None
        if report.finished is not None:
            found = self._unpacked(report.finished)
        elif report.substep is not None:
            value = unpack(report.substep.value, self.registry)
            found = msgspec.structs.replace(report.substep, value=value)
        return EvidenceArrived(intent=report.intent, evidence=found, inbox=report.inbox)

    def pack_ops(self, ops: list[Op]) -> list[Op]:
        return [(p, k, o, pack(v, self.registry)) for p, k, o, v in ops]

    def question(self, execution: Exec, ops: list[Op] | None) -> bytes:
        """What a step asks about values from outside, to be compared."""
        packed = None if ops is None else self.pack_ops(ops)
        return msgspec.msgpack.encode((execution.scope, execution.node, packed))

    def unpack_ops(self, ops: list[Op]) -> list[Op]:
        return [(p, k, o, unpack(v, self.registry)) for p, k, o, v in ops]

    def dump(self, value: Any) -> bytes:
        return pack_envelope(encode_packed(pack(value, self.registry)))

    def read(self, raw: bytes) -> Any:
        return unpack(decode_packed(raw), self.registry)


def encode_spec(spec: HoldSpec | RetryPolicy) -> bytes:
    return msgspec.json.encode(spec)


def decode_spec(raw: bytes, kind: type[Any]) -> Any:
    return msgspec.json.decode(raw, type=kind)


def _prepare_types() -> None:
    """Workflows run in several threads, and two threads that meet a type for the first time at once crash the
    decoder: each type is met here, when the module is imported."""
    pos = Position("")
    pos.scopes[""] = new_scope("", "", {"input": {}, "scratch": {}})
    pos.execs["", 0] = Exec("", 0, 1, 0, 0)
    load_position(dump_position(pos))
    for kind in (
        RunStart,
        NodeCall,
        NodeReply,
        LateReport,
        ProjectRequest,
        MailRequest,
        ExecPlace,
        FitRequest,
        FitReply,
    ):
        with suppress(CheckpointCorruptError):
            decode_body(pack_envelope(b"\x80"), kind)
    for body in BODY_TYPES.values():
        with suppress(CheckpointCorruptError):
            decode_body(pack_envelope(b"\x90"), body)
    msgspec.msgpack.decode(b"\x90", type=list[ExecNote])
    msgspec.msgpack.decode(b"\x90", type=Mail)
    msgspec.msgpack.decode(b"\x80", type=Side)


_prepare_types()
