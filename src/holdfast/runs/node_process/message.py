"""What a worker and the process of a node send each other: one request, one reply, each with its length."""

from __future__ import annotations

import struct
from typing import IO, Any, Final

import msgspec

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.engine.messages import HandlerFinished
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.value import FrozenDict

_LENGTH: Final = struct.Struct(">Q")
_PLAIN: Final = ("outcome", "reported", "retryable", "unknown", "label", "reroute")


class NodeAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Which attempt it is; what a context in the process says of it."""

    run_id: str
    node: str
    scope: str
    place: int
    visit: int
    attempt: int
    failures: int
    tenant: str
    idempotency_key: str


class NodeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`module`, `file`, `flow`, `version`: where the flow is found. `graph`: the sub-flow of the node.
    `code`: the mark of its code. `values`: the state, the item and the input, packed."""

    module: str
    file: str
    search_path: list[str]
    flow: str
    version: str
    graph: str
    code: str
    attempt: NodeAttempt
    values: dict[str, Any]


def write_frame(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """None: the other side ended first."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def encode_reply(finished: HandlerFinished, registry: TypeRegistry) -> bytes:
    known: dict[str, Any] = {name: getattr(finished, name) for name in _PLAIN}
    known["suggested"] = list(finished.suggested)
    known["ops"] = [(p, k, o, pack(v, registry)) for p, k, o, v in finished.ops]
    known["output"] = pack(finished.output, registry)
    known["notes"] = None if finished.notes is None else pack(FrozenDict(finished.notes), registry)
    known["error"] = None if finished.error is None else msgspec.to_builtins(finished.error)
    return msgspec.msgpack.encode(known)


def decode_reply(data: bytes, finished: HandlerFinished, registry: TypeRegistry) -> HandlerFinished:
    """Fills in what the process reports."""
    known: dict[str, Any] = msgspec.msgpack.decode(data)
    for name in _PLAIN:
        setattr(finished, name, known[name])
    finished.suggested = tuple(known["suggested"])
    finished.ops = [(p, k, o, unpack(v, registry)) for p, k, o, v in known["ops"]]
    finished.output = unpack(known["output"], registry)
    finished.notes = None if known["notes"] is None else unpack(known["notes"], registry)
    finished.error = None if known["error"] is None else msgspec.convert(known["error"], ErrorInfo)
    return finished
