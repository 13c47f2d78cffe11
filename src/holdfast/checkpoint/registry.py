"""The closed registry of types: only what a flow declared is ever built when a record is read.

A registered type is known by a name, never by its module path: moving a class breaks nothing, and no
text in a record can lead to an import. Reading fills the fields of the instance; it does not validate
or compute anew, because what was stored is what must come back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from holdfast.checkpoint.shapes import kind_of, shape_of
from holdfast.errors import ValueNotStorableError
from holdfast.types.value import EXACT, SCALARS, BlobRef, FrozenDict, FrozenList

_LEAVES: Final = SCALARS | EXACT | {BlobRef}
_MUTABLE: Final[dict[type[object], str]] = {
    list: "a tuple",
    dict: "FrozenDict",
    set: "a frozenset",
    bytearray: "bytes",
}


class RegisteredType(msgspec.Struct, frozen=True):
    """How instances of one type are converted to fields and back."""

    name: str
    cls: type
    take: Callable[[Any], Any]
    make: Callable[[Any], Any]


class TypeRegistry:
    """Names and types, one to one. A name once used in a record has to stay registered."""

    __slots__ = ("_by_name", "_by_type")

    def __init__(self, *types: type) -> None:
        self._by_name: dict[str, RegisteredType] = {}
        self._by_type: dict[type, RegisteredType] = {}
        for cls in types:
            self.register(cls)

    def register(self, cls: type, name: str | None = None, *, aliases: tuple[str, ...] = ()) -> None:
        """Let instances of `cls` be stored under `name` (the class's own name by default).

        `aliases` are names under which older records know it. Registering the same pair again changes
        nothing. Raises ValueNotStorableError for a kind of type that cannot be kept, and for a name or
        a type that is taken.
        """
        chosen = name or cls.__name__
        known = self._by_type.get(cls)
        if known is not None and known.name != chosen:
            raise ValueNotStorableError(
                f"{cls.__qualname__} is already registered as {known.name!r}, not {chosen!r}.",
                hint=f"Keep the first name; to read records that say {chosen!r}, pass it in `aliases`.",
            )
        for one in (chosen, *aliases):
            # All names are checked before any is entered: a refused registration changes nothing.
            self._require_free(one, cls)
        entry = known or RegisteredType(chosen, cls, *shape_of(cls))
        self._by_type[cls] = entry
        self._by_name.update(dict.fromkeys((chosen, *aliases), entry))

    def _require_free(self, name: str, cls: type) -> None:
        holder = self._by_name.get(name)
        if holder is not None and holder.cls is not cls:
            raise ValueNotStorableError(
                f"the name {name!r} belongs to {holder.cls.__module__}.{holder.cls.__qualname__} already.",
                hint=f"Register {cls.__module__}.{cls.__qualname__} under a name of its own: `name=...`.",
            )

    def of_type(self, cls: type) -> RegisteredType | None:
        return self._by_type.get(cls)

    def named(self, name: str) -> RegisteredType:
        """Raises ValueNotStorableError if no type has this name."""
        entry = self._by_name.get(name)
        if entry is None:
            raise ValueNotStorableError(
                f"the record holds a value of the type {name!r}, which is not registered here.",
                hint="Declare it in `types=[...]` of the flow, or register its successor "
                f"with aliases=({name!r},).",
            )
        return entry

    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def adopt(self, value: object) -> bool:
        """For `types.value.freeze`: whether the value may pass unchanged. Raises ValueNotStorableError for an
        instance of a registered type that contains something mutable or unknown: a frozen dataclass around a
        list is not frozen.
        """
        entry = self._by_type.get(type(value))
        if entry is None:
            return False
        if not isinstance(value, Enum):
            for field, part in entry.take(value).items():
                self._require_frozen(part, f"{entry.name}.{field}")
        return True

    def _require_frozen(self, part: Any, where: str) -> None:
        kind = kind_of(part)
        if kind in _LEAVES:
            return
        if kind is tuple or kind is frozenset or kind is FrozenList:
            for inner in part:
                self._require_frozen(inner, where)
        elif kind is FrozenDict:
            self._require_frozen_map(part, where)
        elif kind in _MUTABLE:
            raise ValueNotStorableError(
                f"{where} is a {kind.__name__}, which is mutable: a handler could change it unnoticed.",
                hint=f"Declare the field as {_MUTABLE[kind]}.",
            )
        elif not self.adopt(part):
            raise ValueNotStorableError(
                f"{where} is a {kind.__module__}.{kind.__qualname__}, which is not registered.",
                hint="Declare that type too in `types=[...]` of the flow.",
            )

    def _require_frozen_map(self, part: Mapping[Any, Any], where: str) -> None:
        for key, inner in part.items():
            self._require_frozen(key, f"a key of {where}")
            self._require_frozen(inner, f"{where}[{key!r}]")


EMPTY: Final = TypeRegistry()
"""Knows no type: enough for plain values."""
