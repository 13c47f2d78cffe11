"""How a dotted path finds its value: mappings by key, lists by index, records by declared field; never by
attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import msgspec

from holdfast.model.expressions.values import MISSING
from holdfast.types.value import BlobRef

Path: TypeAlias = tuple[str, ...]
Resolve: TypeAlias = Callable[[Path], object]

PARTITIONS: Final = frozenset({"scratch", "input", "artifacts", "memory", "diagnostics"})

_NOTHING: Mapping[str, object] = {}
_MAX_INDEX_DIGITS = 18


def partition_resolver(partitions: Mapping[str, Mapping[str, object]]) -> Resolve:
    """Resolve paths against the partitions of a state.

    A leading `state.` is dropped. A first part that names a partition reads that partition, always, so a
    scratch key called `input` is reached as `scratch.input`. Any other first part is looked up in scratch,
    then in input; the first that has it decides, even if the rest of the path leads nowhere there.
    """
    scratch = partitions.get("scratch", _NOTHING)
    given = partitions.get("input", _NOTHING)

    def resolve(path: Path) -> object:
        first = path[0]
        if first == "state" and len(path) > 1:
            path = path[1:]
            first = path[0]
        if first in PARTITIONS:
            value = partitions.get(first, MISSING)
        else:
            value = scratch.get(first, MISSING)
            if value is MISSING:
                value = given.get(first, MISSING)
        return value if len(path) == 1 else walk(value, path[1:])

    return resolve


def mapping_resolver(values: Mapping[str, object]) -> Resolve:
    """Resolve paths against one mapping, such as the variable snapshot of a hold."""

    def resolve(path: Path) -> object:
        return walk(values, path)

    return resolve


def nested_values(values: Mapping[str, object]) -> dict[str, Any]:
    """`{"input.order": 7}` as `{"input": {"order": 7}}`."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        place = found
        *parts, last = name.split(".")
        for part in parts:
            place = place.setdefault(part, {})
        place[last] = value
    return found


def walk(value: object, parts: Path, *, records: bool = True) -> object:
    """Follow the parts from a value; MISSING as soon as one leads nowhere. Without `records` the values of
    dataclasses and the like have no parts."""
    for part in parts:
        if isinstance(value, Mapping):
            value = _entry(cast("Mapping[object, object]", value), part)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
            value = _item(cast("Sequence[object]", value), part)
        elif records and part in _fields(cast("type[Any]", type(value))):
            value = getattr(cast("object", value), part, MISSING)
        else:
            return MISSING
    return value


@lru_cache(maxsize=1024)
def _fields(kind: type[Any]) -> frozenset[str]:
    """The declared fields of a record type: a dataclass, a msgspec.Struct or a pydantic model."""
    if is_dataclass(kind):
        return frozenset(field.name for field in fields_of(kind))
    if issubclass(kind, msgspec.Struct) and kind is not BlobRef:
        return frozenset(kind.__struct_fields__)
    declared: Any = getattr(kind, "model_fields", None) if hasattr(kind, "model_dump") else None
    return frozenset(cast("Mapping[str, Any]", declared)) if isinstance(declared, Mapping) else frozenset()


def _entry(mapping: Mapping[object, object], part: str) -> object:
    value = mapping.get(part, MISSING)
    if value is MISSING and _is_index(part):
        return mapping.get(int(part), MISSING)
    return value


def _item(items: Sequence[object], part: str) -> object:
    if _is_index(part) and int(part) < len(items):
        return items[int(part)]
    return MISSING


def _is_index(part: str) -> bool:
    """The bound keeps a hostile million-digit index from costing anything."""
    return part.isascii() and part.isdigit() and len(part) <= _MAX_INDEX_DIGITS
