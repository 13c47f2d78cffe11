"""What a worker that lost a run still knows: how the effects ended that it had begun (D-17).

Fencing stops writes to the journal, not effects in flight. Their results are told beside the intent, with no
fence, and an inbox row says so: a doubt that was already asked is resolved by it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.checkpoint import TypeRegistry, pack, unpack
from holdfast.engine.messages import Finished, Proven
from holdfast.store.protocols import Store
from holdfast.types.ids import RunId

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_NODE = ("scope", "node", "visit", "outcome", "routes", "reroute", "duration", "label")


async def report(store: Store, run: RunId, intent: int, told: bytes) -> None:
    await store.report_late(run, intent, told)
    await store.send(run, "late", b"%d" % intent, dedupe=f"late:{intent}")


def encode(told: Finished | Proven, registry: TypeRegistry) -> bytes:
    if isinstance(told, Proven):
        value = pack(told.value, registry)
        return _encode({"step": told.ordinal, "name": told.name, "value": value, "effect": told.effect})
    known: dict[str, Any] = {name: getattr(told, name) for name in _NODE}
    known["ops"] = [(p, k, o, pack(v, registry)) for p, k, o, v in told.ops]
    known["output"] = pack(told.output, registry)
    if told.error is not None:
        known["error"] = msgspec.to_builtins(told.error)
        known["retryable"] = told.retryable
    return _encode(known)


def decode(raw: bytes, registry: TypeRegistry) -> Finished | Proven:
    known: dict[str, Any] = _decode(raw)
    if "step" in known:
        value = unpack(known["value"], registry)
        return Proven(ordinal=known["step"], name=known["name"], value=value, effect=known.get("effect", ""))
    ops = [(p, k, o, unpack(v, registry)) for p, k, o, v in known.pop("ops")]
    output = unpack(known.pop("output"), registry)
    told = msgspec.convert(known, Finished)
    told.ops, told.output = ops, output
    return told
