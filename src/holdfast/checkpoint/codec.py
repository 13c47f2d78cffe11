"""Frozen values as what MessagePack carries without loss, and back: equal, and of equal type at every depth.

Most values need no help and pass as the same object. What MessagePack does not distinguish (a tuple from a
list) or does not know becomes an extension; see `scalars` for the codes. `unpack` needs the registry of
types; reading a record's envelope does not.
"""

from __future__ import annotations

from operator import is_
from typing import Any, Final, cast

import msgspec
from msgspec.msgpack import Ext

from holdfast.checkpoint.error_path import locate
from holdfast.checkpoint.registry import EMPTY, TypeRegistry
from holdfast.checkpoint.scalars import (
    FROZENSET,
    MAP,
    PACK,
    READ,
    REGISTERED,
    TUPLE,
    decode,
    encode,
    pack_big_int,
)
from holdfast.checkpoint.shapes import kind_of
from holdfast.errors import CheckpointCorruptError, HoldfastError, ValueNotStorableError
from holdfast.types.value import SCALARS, FrozenDict, FrozenList

_INT_MIN: Final = -(2**63)
_INT_MAX: Final = 2**64 - 1
# Exact whatever their value; text and numbers have to be checked.
_PASS: Final = frozenset({float, bool, type(None), bytes})
_NESTED: Final = frozenset({TUPLE, FROZENSET, MAP, REGISTERED})
_STR: Final[frozenset[type]] = frozenset({str})
_INT: Final[frozenset[type]] = frozenset({int})


def pack(value: Any, registry: TypeRegistry = EMPTY, where: str = "value") -> Any:
    """Converts to what `msgspec.msgpack` encodes and `unpack` returns as the same value.

    Raises ValueNotStorableError, naming the place, for what cannot be read back exactly.
    """
    try:
        return _pack(value, registry)
    except ValueNotStorableError as error:
        # Searched only after a failure, so that the path to a value costs nothing when all is well.
        place = locate(value, lambda part: _is_refused(part, registry), where, lambda v: _take(v, registry))
        raise ValueNotStorableError(f"{place} cannot be stored. {error.message}", hint=error.hint) from None


def unpack(raw: Any, registry: TypeRegistry = EMPTY) -> Any:
    """The frozen value that `pack` was given. Raises ValueNotStorableError for a type, a field or a time zone
    that is not known here, and CheckpointCorruptError for what `pack` never writes.
    """
    if type(raw) in SCALARS:
        return raw
    try:
        return _unpack(raw, registry)
    except RecursionError:
        raise CheckpointCorruptError("a stored value is nested deeper than any that is written.") from None


def _pack(value: Any, registry: TypeRegistry) -> Any:
    kind = kind_of(value)
    if kind is str:
        if not value.isascii():
            _require_text(value)
        return value
    if kind is int:
        return value if _INT_MIN <= value <= _INT_MAX else pack_big_int(value)
    if kind in _PASS:
        return value
    if kind is FrozenDict or kind is dict:
        return _pack_dict(value, registry)
    if kind is FrozenList or kind is list:
        return _pack_list(value, registry)
    if kind is tuple:
        return Ext(TUPLE, encode(_pack_list(value, registry)))
    if kind is frozenset:
        return _pack_frozenset(value, registry)
    exact = PACK.get(kind)
    return exact(value) if exact is not None else _pack_registered(value, registry)


def _require_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueNotStorableError(
            f"the text has half of a surrogate pair at {error.start}, which is no character.",
            hint="Decode it with errors='replace', or store it as bytes.",
        ) from None


def _pack_dict(value: dict[Any, Any], registry: TypeRegistry) -> Any:
    changed: dict[Any, Any] | None = None
    for key, item in value.items():
        # MessagePack has only scalar keys: a tuple as a key needs the list form.
        if (type(key) is not str or not key.isascii()) and _pack(key, registry) is not key:
            return _pack_map(value, registry)
        # The exact type: a subclass of int or str would come back as the plain type.
        kind = kind_of(item)
        if kind in _PASS or (kind is str and item.isascii()):
            continue
        if kind is int and _INT_MIN <= item <= _INT_MAX:
            continue
        packed = _pack(item, registry)
        if packed is not item:
            if changed is None:
                changed = dict(value)
            changed[key] = packed
    return value if changed is None else changed


def _pack_map(value: dict[Any, Any], registry: TypeRegistry) -> Ext:
    return Ext(MAP, encode([_pack(part, registry) for pair in value.items() for part in pair]))


def _pack_list(value: list[Any] | tuple[Any, ...], registry: TypeRegistry) -> Any:
    kinds: frozenset[type] = frozenset(map(type, value))
    if kinds <= _PASS:
        return value
    # One C loop each for the two common kinds of long lists.
    if kinds == _STR and all(map(str.isascii, value)):
        return value
    if kinds == _INT and min(value) >= _INT_MIN and max(value) <= _INT_MAX:
        return value
    packed = [item if type(item) in _PASS else _pack(item, registry) for item in value]
    return value if all(map(is_, packed, value)) else packed


def _pack_frozenset(value: frozenset[Any], registry: TypeRegistry) -> Ext:
    # Sorted, so that equal sets are equal bytes in every process.
    parts = sorted(encode(_pack(item, registry)) for item in value)
    return Ext(FROZENSET, encode([msgspec.Raw(part) for part in parts]))


def _pack_registered(value: Any, registry: TypeRegistry) -> Ext:
    kind = kind_of(value)
    entry = registry.of_type(kind)
    if entry is None:
        raise ValueNotStorableError(
            f"it is a {kind.__module__}.{kind.__qualname__}, which is not registered.",
            hint="Return plain data, or declare the type in `types=[...]` of the flow.",
        )
    return Ext(REGISTERED, encode((entry.name, _pack(entry.take(value), registry))))


def _is_refused(part: Any, registry: TypeRegistry) -> bool:
    try:
        _pack(part, registry)
    except ValueNotStorableError:
        return True
    return False


def _take(value: Any, registry: TypeRegistry) -> object:
    kind = kind_of(value)
    entry = registry.of_type(kind)
    try:
        return None if entry is None else entry.take(value)
    except ValueNotStorableError:
        return None


def _unpack(raw: Any, registry: TypeRegistry) -> Any:
    kind = kind_of(raw)
    if kind is dict:
        return _unpack_dict(raw, registry)
    if kind is list:
        return FrozenList(_unpack_items(raw, registry))
    if kind in SCALARS:
        return raw
    if kind is Ext:
        return _unpack_ext(raw.code, raw.data, registry)
    raise CheckpointCorruptError(
        f"a stored value is of the kind {kind.__qualname__}, which is never written."
    )


def _unpack_dict(raw: dict[Any, Any], registry: TypeRegistry) -> FrozenDict:
    if SCALARS.issuperset(map(type, raw.values())):
        return FrozenDict(raw)
    return FrozenDict({k: v if type(v) in SCALARS else _unpack(v, registry) for k, v in raw.items()})


def _unpack_items(raw: list[Any], registry: TypeRegistry) -> list[Any]:
    if SCALARS.issuperset(map(type, raw)):
        return raw
    return [v if type(v) in SCALARS else _unpack(v, registry) for v in raw]


def _unpack_ext(code: int, data: Any, registry: TypeRegistry) -> Any:
    if code not in READ and code not in _NESTED:
        raise CheckpointCorruptError(
            f"a stored value has the unknown extension code {code}.",
            hint="Either the record is damaged, or a newer version of Holdfast wrote it: upgrade this one.",
        )
    try:
        reader = READ.get(code)
        if reader is not None:
            return reader(bytes(data))
        return _unpack_nested(code, decode(data), registry)
    except (HoldfastError, RecursionError):
        raise
    except Exception as error:
        raise CheckpointCorruptError(
            f"a stored value (extension {code}) cannot be read: {error}",
            hint="The record is damaged: restore it from a backup, or resume from an earlier checkpoint.",
        ) from error


def _unpack_nested(code: int, raw: Any, registry: TypeRegistry) -> Any:
    if code == TUPLE:
        return tuple(_unpack_items(_array(raw), registry))
    if code == FROZENSET:
        return frozenset(_unpack_items(_array(raw), registry))
    if code == MAP:
        flat = _unpack_items(_array(raw), registry)
        return FrozenDict(zip(flat[::2], flat[1::2], strict=True))
    name, parts = raw
    return registry.named(name).make(_unpack(parts, registry))


def _array(raw: Any) -> list[Any]:
    if type(raw) is not list:
        raise ValueError("an array was expected")
    return cast("list[Any]", raw)
