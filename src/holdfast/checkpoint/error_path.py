"""Finds the part of a value that was refused. Only called after a refusal, so it may be slow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

Take = Callable[[Any], object]
"""The fields of a registered type's instance as a dict, or anything else where it has none."""


def locate(value: Any, refused: Callable[[Any], bool], where: str, take: Take | None = None) -> str:
    """The path of the innermost refused part."""
    for label, part in _parts(value, take):
        if refused(part):
            return locate(part, refused, where + label, take)
    return where


def _parts(value: Any, take: Take | None) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in cast("dict[Any, Any]", value).items():
            yield f" (the key {key!r})", key
            yield f"[{key!r}]", item
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(cast("list[Any]", value)):
            yield f"[{i}]", item
    elif isinstance(value, frozenset):
        for item in cast("frozenset[Any]", value):
            yield f" (the member {item!r})", item
    else:
        yield from _fields(value, take)


def _fields(value: Any, take: Take | None) -> Iterator[tuple[str, Any]]:
    if take is not None:
        fields = take(value)
    elif isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
    else:
        return
    if isinstance(fields, dict):
        for name, item in cast("dict[str, Any]", fields).items():
            yield f".{name}", item
