"""Schemas and values whose `repr` is short.

The library jsonschema writes both into the message of every error, also of those that nobody reads. A list of
a million values would be written out for each alternative that it does not match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from holdfast.model.checks.json_schemas import KEYWORDS

_BY_NAME: Final = "properties"
_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_SEVERAL: Final = frozenset({"prefixItems", "anyOf", "oneOf", "allOf"})
_LONG: Final = 100


class _Object(dict[str, Any]):
    def __repr__(self) -> str:
        return "an object"


class _List(list[Any]):
    def __repr__(self) -> str:
        return "a list"


class _Text(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return repr(str(self[:_LONG]))


def short_value(value: Any) -> Any:
    """The same JSON value."""
    if isinstance(value, dict):
        return _Object({key: short_value(inner) for key, inner in cast("dict[str, Any]", value).items()})
    if isinstance(value, (list, tuple)):
        return _List([short_value(inner) for inner in cast("list[Any]", value)])
    return _Text(value) if isinstance(value, str) and len(value) > _LONG else value


def short_schema(schema: Any) -> Any:
    """The same schema, with the keywords that are checked alone: by a `$schema` the library would choose
    another validator for the part that has it. In a fixed order, because a stored schema has lost its own."""
    if not isinstance(schema, Mapping):
        return schema
    given = cast("Mapping[str, Any]", schema)
    return _Object({keyword: _inner(keyword, given[keyword]) for keyword in KEYWORDS if keyword in given})


def _inner(keyword: str, value: Any) -> Any:
    if keyword == _BY_NAME:
        return _Object({name: short_schema(schema) for name, schema in value.items()})
    if keyword in _ONE:
        return short_schema(value)
    if keyword in _SEVERAL:
        return _List([short_schema(schema) for schema in value])
    return short_value(value)
