"""Which JSON Schemas providers guarantee answers for: closed objects without the keywords that their grammars
do not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

_NOTES: Final = frozenset({"type", "description", "title", "enum", "const"})
_PLAIN: Final = _NOTES | frozenset({"properties", "required", "additionalProperties", "items", "anyOf"})
_TYPES: Final = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})


def is_strict(schema: Mapping[str, Any]) -> bool:
    """Whether every object in it requires all its properties and allows no others, as the strict modes want,
    and the whole is an object."""
    return schema.get("type") == "object" and _fits(schema, all_required=True)


def is_closed(schema: Mapping[str, Any]) -> bool:
    """The same, but properties may be optional."""
    return schema.get("type") == "object" and _fits(schema, all_required=False)


def _fits(schema: Any, *, all_required: bool) -> bool:
    if not isinstance(schema, Mapping):
        return False
    part = cast("Mapping[str, Any]", schema)
    if set(part) - _PLAIN:
        return False
    kinds: Any = part.get("type", [])
    if not set(cast("list[str]", kinds) if isinstance(kinds, list) else [kinds]) <= _TYPES:
        return False
    inner: list[Any] = [*part.get("anyOf", ()), *([part["items"]] if "items" in part else ())]
    if "object" in kinds or "properties" in part:
        properties: Mapping[str, Any] = part.get("properties", {})
        if part.get("additionalProperties") is not False:
            return False
        if all_required and set(properties) != set(part.get("required", ())):
            return False
        inner += properties.values()
    elif "anyOf" not in part and not kinds and "enum" not in part and "const" not in part:
        return False
    return all(_fits(each, all_required=all_required) for each in inner)
