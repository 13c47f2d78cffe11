"""Reading and writing back without the flow's code: values of declared types stay as they were stored."""

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
