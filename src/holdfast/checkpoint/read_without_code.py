"""Reading without the flow's code: `LenientRegistry` shows values of declared types as plain data;
`OpaqueRegistry` keeps them as they were stored, so that they can be written back."""

from __future__ import annotations

from typing import Any

from holdfast.checkpoint.registry import RegisteredType, TypeRegistry


class Opaque:
    """An instance of a type that is not known here: its name and its fields."""

    __slots__ = ("parts",)

    def __init__(self, parts: Any) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and getattr(other, "parts", None) == self.parts

    def __hash__(self) -> int:
        return hash(repr(self.parts))


class OpaqueRegistry(TypeRegistry):
    """Makes up a type for each unknown name. What was read can be written back to the same bytes; nothing
    else can be done with it."""

    def named(self, name: str) -> RegisteredType:
        entry = self._by_name.get(name)
        if entry is None:
            cls = type(name, (Opaque,), {"__slots__": ()})
            entry = self._by_name[name] = self._by_type[cls] = RegisteredType(name, cls, _parts, cls)
        return entry


def _parts(value: Opaque) -> Any:
    return value.parts


class LenientRegistry(TypeRegistry):
    """For reading only: a type that is not known here is shown by its fields. Never for writing back: `met`
    says whether there was one."""

    met = False

    def named(self, name: str) -> RegisteredType:
        self.met = True
        return RegisteredType(name, object, _as_is, _as_is)


def _as_is(value: Any) -> Any:
    return value
