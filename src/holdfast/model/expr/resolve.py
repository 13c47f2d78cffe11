"""How a dotted path finds its value: through mappings by key and lists by index, never by attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from holdfast.model.expr.values import MISSING

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


def walk(value: object, parts: Path) -> object:
    """Follow the parts from a value; MISSING as soon as one leads nowhere."""
    for part in parts:
        if isinstance(value, Mapping):
            value = _entry(cast("Mapping[object, object]", value), part)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
            value = _item(cast("Sequence[object]", value), part)
        else:
            return MISSING
    return value


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
