"""Checks the JSON Schema of an answer when the question is declared, before a person has to answer it.

It accepts the part of JSON Schema that answers of people need. A keyword that would not be checked is a
fault, because the author who wrote it relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from holdfast.model.checks.regex_safety import pattern_problem

TYPES: Final = ("null", "boolean", "integer", "number", "string", "array", "object")
MAX_DEPTH: Final = 32
# Annotations for people and editors; they do not affect which answers are valid.
_NOTES: Final = frozenset(
    {
        "title", "description", "default", "examples", "format", "$schema", "$id", "$comment", "$defs",
        "definitions", "readOnly", "writeOnly", "deprecated", "discriminator", "contentEncoding",
        "contentMediaType",
    }
)  # fmt: skip
_ORDERED: Final = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)

Faults = Iterator[str]
_Check = Callable[[Any, str, int], Faults]


def schema_faults(schema: Any) -> list[str]:
    """Every fault of a schema with its place (`schema.properties.age.type: ...`); empty if it is valid."""
    try:
        msgspec.json.encode(schema)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return [f"schema: is not JSON: {error}"]
    return list(_schema(schema, "schema", 0))


def _schema(schema: Any, where: str, depth: int) -> Faults:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{where}: {_short(schema)} is not a schema; write an object, true or false"
    elif depth > MAX_DEPTH:
        yield f"{where}: schemas go at most {MAX_DEPTH} levels deep"
    else:
        keywords = cast("Mapping[str, Any]", schema)
        for keyword, value in keywords.items():
            yield from _keyword(keyword, value, f"{where}.{keyword}", depth)
        yield from _order(keywords, where)


def _keyword(keyword: str, value: Any, where: str, depth: int) -> Faults:
    check = _CHECKS.get(keyword)
    if check is not None:
        yield from check(value, where, depth)
    elif keyword == "$ref":
        yield f"{where}: references are not followed; write the schema in place, or give its type"
    elif keyword not in _NOTES and not keyword.startswith("x-"):
        yield f"{where}: is not a keyword that answers are checked for"


def _order(schema: Mapping[str, Any], where: str) -> Faults:
    for low, high in _ORDERED:
        least: Any = schema.get(low)
        most: Any = schema.get(high)
        if _is_number(least) and _is_number(most) and least > most:
            yield f"{where}: {low} {least} is above {high} {most}, so nothing is valid"


def _type(value: Any, where: str, _depth: int) -> Faults:
    names: Any = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names:
        yield f"{where}: {_short(value)} is neither the name of a type nor a list of them"
        return
    for name in cast("list[Any]", names):
        if name not in TYPES:
            yield f"{where}: {_short(name)} is not one of {', '.join(TYPES)}"


def _schemas_by_name(value: Any, where: str, depth: int) -> Faults:
    if not isinstance(value, Mapping):
        yield f"{where}: {_short(value)} is not an object of schemas"
        return
    for name, inner in cast("Mapping[str, Any]", value).items():
        yield from _schema(inner, f"{where}.{name}", depth + 1)


def _one_schema(value: Any, where: str, depth: int) -> Faults:
    yield from _schema(value, where, depth + 1)


def _schema_list(value: Any, where: str, depth: int) -> Faults:
    if not isinstance(value, (list, tuple)) or not value:
        yield f"{where}: {_short(value)} is not a list of schemas"
        return
    for index, inner in enumerate(cast("list[Any]", value)):
        yield from _schema(inner, f"{where}[{index}]", depth + 1)


def _names(value: Any, where: str, _depth: int) -> Faults:
    if not isinstance(value, (list, tuple)) or not all(isinstance(n, str) for n in cast("list[Any]", value)):
        yield f"{where}: {_short(value)} is not a list of names"


def _values(value: Any, where: str, _depth: int) -> Faults:
    if not isinstance(value, (list, tuple)) or not value:
        yield f"{where}: {_short(value)} is not a list of values"


def _anything(_value: Any, _where: str, _depth: int) -> Faults:
    return iter(())


def _number(value: Any, where: str, _depth: int) -> Faults:
    if not _is_number(value):
        yield f"{where}: {_short(value)} is not a number"


def _step(value: Any, where: str, _depth: int) -> Faults:
    if not _is_number(value) or value <= 0:
        yield f"{where}: {_short(value)} is not a number above 0"


def _count(value: Any, where: str, _depth: int) -> Faults:
    if type(value) is not int or value < 0:
        yield f"{where}: {_short(value)} is not a count"


def _flag(value: Any, where: str, _depth: int) -> Faults:
    if not isinstance(value, bool):
        yield f"{where}: {_short(value)} is neither true nor false"


def _pattern(value: Any, where: str, _depth: int) -> Faults:
    problem = pattern_problem(value) if isinstance(value, str) else "is not a regular expression"
    if problem is not None:
        yield f"{where}: {_short(value)} {problem}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


_CHECKS: Final[dict[str, _Check]] = {
    "type": _type,
    "enum": _values,
    "const": _anything,
    "properties": _schemas_by_name,
    "required": _names,
    "additionalProperties": _one_schema,
    "minProperties": _count,
    "maxProperties": _count,
    "items": _one_schema,
    "prefixItems": _schema_list,
    "minItems": _count,
    "maxItems": _count,
    "uniqueItems": _flag,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "multipleOf": _step,
    "minLength": _count,
    "maxLength": _count,
    "pattern": _pattern,
    "anyOf": _schema_list,
    "oneOf": _schema_list,
    "allOf": _schema_list,
    "not": _one_schema,
}

KEYWORDS: Final = tuple(_CHECKS)
"""In this order `holdfast.holds.forms.json_schema` checks them."""
