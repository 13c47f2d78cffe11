"""The checkpoint interface that others read: names, shapes and its JSON Schema.

Everything here is JSON-safe: a reader in another language needs nothing of ours.
"""

from __future__ import annotations

import dataclasses
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import msgspec

from holdfast.checkpoint.shapes import kind_of
from holdfast.model.secrets import masked, secret_fields
from holdfast.types.redaction import MASK, redactor
from holdfast.types.value import BlobRef

if TYPE_CHECKING:
    from holdfast.checkpoint.checkpoint import Checkpoint


def as_interface(checkpoint: Checkpoint) -> dict[str, Any]:
    """A new, plain dict each time: changing it changes nothing that is stored."""
    checkpoint = checkpoint.shown()
    shown: dict[str, Any] = {
        "id": checkpoint.id,
        "graphId": checkpoint.version,
        "runId": checkpoint.run,
        "nodeId": checkpoint.node,
        "timestamp": checkpoint.at // 1000,
        "state": {
            "input": jsonable(checkpoint.input),
            "scratch": jsonable(checkpoint.state),
            "artifacts": jsonable(checkpoint.artifacts),
            "diagnostics": jsonable(checkpoint.diagnostics),
        },
        "nodeResults": {
            label: {
                "effectClass": execution.effect,
                "output": jsonable(execution.output),
                "durationMs": execution.duration / 1000,
            }
            for label, execution in checkpoint.node_results.items()
        },
        "visitedNodes": list(checkpoint.visited),
        "skippedNodes": list(checkpoint.skipped),
        "pendingEdges": list(checkpoint.pending_edges),
    }
    if checkpoint.memory is not None:
        shown["memorySnapshot"] = jsonable(checkpoint.memory)
    return shown


_MOST_BITS: Final = 14_000


def jsonable(value: Any) -> Any:
    """The nearest value in JSON: keys become text, bytes base64, instants ISO 8601, sets sorted lists."""
    if isinstance(value, str):
        return redactor.redact(value.value if isinstance(value, Enum) else value)
    if value is None or isinstance(value, (bool, int)):
        return _number(value.value if isinstance(value, Enum) else value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {_key(k): jsonable(v) for k, v in value.items()}  # type: ignore[misc]
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]  # type: ignore[misc]
    if isinstance(value, (set, frozenset)):
        return sorted((jsonable(v) for v in value), key=repr)  # type: ignore[misc]
    return _leaf(value)


def _key(key: Any) -> str:
    """Not masked: two keys could become one, and a reader would not find the field."""
    plain = key.value if isinstance(key, Enum) else key
    return str(plain if isinstance(plain, (str, int)) else jsonable(plain))


def _leaf(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Enum):
        return jsonable(value.value)
    if isinstance(value, BlobRef):
        return {"blob": value.digest.hex(), "size": value.size}
    if isinstance(value, msgspec.Struct):
        shown: Any = getattr(value, "shown", None)
        return _fields(value, msgspec.structs.asdict(shown() if callable(shown) else value))  # type: ignore[arg-type]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    dump: Any = getattr(value, "model_dump", None)
    return _fields(value, dump()) if callable(dump) else redactor.redact(str(value))  # type: ignore[arg-type]


def _fields(value: Any, parts: dict[str, Any]) -> Any:
    """Fields that the type declares secret are hidden."""
    return jsonable(masked(parts, secret_fields(kind_of(value))))


def _number(value: Any) -> Any:
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        # Python writes no longer one in decimal digits: `run` and `show` would fail on it.
        return hex(value)
    return (
        MASK
        if isinstance(value, int) and not isinstance(value, bool) and redactor.is_known_secret(value)
        else value
    )


def _object(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _map_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": schema}


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


_TEXT: dict[str, Any] = {"type": "string"}
_NUMBER: dict[str, Any] = {"type": "number"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_ANY: dict[str, Any] = {}

_DIAGNOSTICS = _object(
    {
        "totalTokensUsed": _NUMBER,
        "totalDurationMs": _NUMBER,
        "nodeTimings": _map_of(_object({"startMs": _NUMBER, "endMs": _NUMBER, "tokensUsed": _NUMBER})),
        "discoveryResults": _map_of(
            _object({"query": _TEXT, "toolsFound": _list_of(_TEXT), "latencyMs": _NUMBER})
        ),
        "guardrailResults": _map_of(
            _object(
                {"guardrailId": _TEXT, "passed": {"type": "boolean"}, "action": _TEXT, "latencyMs": _NUMBER}
            )
        ),
        "checkpointsSaved": _COUNT,
        "memoryReads": _COUNT,
        "memoryWrites": _COUNT,
    }
)
# A fork's patch may add more.
_DIAGNOSTICS["additionalProperties"] = True

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Checkpoint",
    "description": "A run at a node boundary. Nodes inside maps and sub-flows are named with their scope.",
    **_object(
        {
            "id": {"type": "string", "format": "uuid", "description": "Unique; version-4 form."},
            "graphId": {"type": "string", "description": "Fingerprint of the flow version."},
            "runId": {"type": "string", "format": "uuid"},
            "nodeId": {"type": "string", "description": "Whose boundary it is; empty at start and end."},
            "timestamp": {"type": "integer", "description": "Milliseconds since the epoch."},
            "state": _object(
                {"input": _ANY, "scratch": _ANY, "artifacts": _ANY, "diagnostics": _DIAGNOSTICS}
            ),
            "memorySnapshot": _object(
                {
                    "reads": _list_of(_object({"traceId": _TEXT, "content": _TEXT, "strength": _NUMBER})),
                    "pendingWrites": _list_of(_object({"type": _TEXT, "content": _TEXT, "scope": _TEXT})),
                }
            ),
            "nodeResults": _map_of(
                _object(
                    {
                        "effectClass": {"enum": ["pure", "read", "write", "external", "human"]},
                        "output": _ANY,
                        "durationMs": _NUMBER,
                    }
                )
            ),
            "visitedNodes": {**_list_of(_TEXT), "description": "Completed nodes in order, each once."},
            "skippedNodes": {**_list_of(_TEXT), "description": "Bypassed by routing: they will not run."},
            "pendingEdges": {
                **_list_of(_TEXT),
                "description": "Taken, the target not started; `__START__->node` for a first node.",
            },
        },
        optional=("memorySnapshot", "skippedNodes"),
    ),
}
"""JSON Schema of the interface; published as docs/reference/checkpoint.schema.json."""
