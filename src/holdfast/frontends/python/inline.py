"""Inlines the references in the schema of a type, because answers are checked without references."""

from __future__ import annotations

from typing import Any, Final, cast

_PREFIX: Final = "#/$defs/"


def inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Raises ValueError for a type that contains itself: inlined, its schema would never end."""
    parts = schema.get("$defs", {})
    return _part({name: value for name, value in schema.items() if name != "$defs"}, parts, ())


def _part(value: Any, parts: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(value, list):
        return [_part(item, parts, inside) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = {name: _part(item, parts, inside) for name, item in cast("dict[str, Any]", value).items()}
    ref = found.get("$ref")
    if not isinstance(ref, str) or not ref.startswith(_PREFIX):
        return found
    name = ref.removeprefix(_PREFIX)
    if name in inside:
        raise ValueError(f"{name} contains itself")
    del found["$ref"]
    # A keyword beside a reference, such as a description, is about this place, so it wins.
    return {**_part(parts[name], parts, (*inside, name)), **found}
