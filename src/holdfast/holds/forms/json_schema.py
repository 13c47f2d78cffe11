"""Whether the data of an answer fits the JSON Schema of its hold: every problem, each with its path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import longest_text

Problems = Iterator[str]
_Check = Callable[[Any, Any, Mapping[str, Any], str], Problems]


def problems_in(value: Any, schema: Any) -> list[str]:
    """What is wrong with a JSON value, as `data.items[2].price: ...`; none: it is valid.

    A schema that makes no sense itself makes every value invalid: nothing may pass unchecked."""
    faults = schema_faults(schema)
    if faults:
        return [f"the hold's {fault}" for fault in faults]
    try:
        return list(_problems(value, schema, "data"))
    except RecursionError:
        return ["data: is nested too deeply to be compared"]


def _problems(value: Any, schema: Any, path: str) -> Problems:
    if isinstance(schema, bool):
        if not schema:
            yield f"{path}: nothing is allowed here"
        return
    # In the order of the table: a stored schema has lost the order in which it was written.
    for keyword, check in _CHECKS.items():
        if keyword in schema:
            yield from check(value, schema[keyword], schema, path)


def _fits(value: Any, schema: Any) -> bool:
    return next(_problems(value, schema, ""), None) is None


# ---------------------------------------------------------------------- any value


def _type(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if not any(_TYPES[name](value) for name in names):
        yield f"{path}: {_short(value)} is not {_one_of(names)}"


def _enum(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if _key(value) not in [_key(each) for each in wanted]:
        yield f"{path}: {_short(value)} is none of {', '.join(_short(each) for each in wanted)}"


def _const(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if _key(value) != _key(wanted):
        yield f"{path}: {_short(value)} is not {_short(wanted)}"


def _any_of(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    ways = [list(_problems(value, schema, path)) for schema in wanted]
    if all(ways):
        tried = "; or ".join(", ".join(problems) for problems in ways)
        yield f"{path}: {_short(value)} fits none of {len(ways)} forms ({tried})"


def _one_form(value: Any, wanted: Any, schema: Mapping[str, Any], path: str) -> Problems:
    fitting = sum(_fits(value, each) for each in wanted)
    if fitting == 0:
        yield from _any_of(value, wanted, schema, path)
    elif fitting > 1:
        yield f"{path}: {_short(value)} fits {fitting} forms of which it may fit one"


def _all_of(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    for schema in wanted:
        yield from _problems(value, schema, path)


def _not(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if _fits(value, wanted):
        yield f"{path}: {_short(value)} has a form that is not allowed"


# ---------------------------------------------------------------------- objects


def _properties(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if isinstance(value, dict):
        for name, schema in wanted.items():
            if name in value:
                yield from _problems(value[name], schema, f"{path}.{name}")


def _required(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if isinstance(value, dict):
        for name in wanted:
            if name not in value:
                yield f"{path}.{name}: is missing"


def _additional(value: Any, wanted: Any, schema: Mapping[str, Any], path: str) -> Problems:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name, inner in cast("dict[str, Any]", value).items():
        if name in known:
            continue
        if wanted is False:
            yield f"{path}.{name}: is not asked for"
        else:
            yield from _problems(inner, wanted, f"{path}.{name}")


# ---------------------------------------------------------------------- lists


def _items(value: Any, wanted: Any, schema: Mapping[str, Any], path: str) -> Problems:
    if isinstance(value, list):
        first = len(schema.get("prefixItems", ()))
        for index, item in enumerate(cast("list[Any]", value)[first:], first):
            yield from _problems(item, wanted, f"{path}[{index}]")


def _prefix(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if isinstance(value, list):
        pairs = zip(cast("list[Any]", value), wanted, strict=False)
        for index, (item, schema) in enumerate(pairs):
            yield from _problems(item, schema, f"{path}[{index}]")


def _unique(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if wanted and isinstance(value, list):
        seen: dict[Any, int] = {}
        for index, item in enumerate(cast("list[Any]", value)):
            first = seen.setdefault(_key(item), index)
            if first != index:
                yield f"{path}[{index}]: {_short(item)} is there already, at [{first}]"


# ---------------------------------------------------------------------- sizes


def _size(kind: type, least: bool, what: str) -> _Check:
    def check(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
        if isinstance(value, kind):
            size = len(value)
            if size < wanted if least else size > wanted:
                yield f"{path}: has {size} {what}, {'fewer' if least else 'more'} than {wanted}"

    return check


def _bound(fits: Callable[[Any, Any], bool], what: str) -> _Check:
    def check(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
        if _is_number(value) and not fits(value, wanted):
            yield f"{path}: {_short(value)} is not {what} {wanted}"

    return check


def _is_multiple(value: Any, step: Any) -> bool:
    """In exact numbers: as floats, 0.3 is no multiple of 0.1."""
    from fractions import Fraction

    return Fraction(str(value)) % Fraction(str(step)) == 0


def _pattern(value: Any, wanted: Any, _schema: Mapping[str, Any], path: str) -> Problems:
    if not isinstance(value, str):
        return
    most = longest_text(wanted)
    if len(value) > most:
        yield f"{path}: has {len(value)} characters; a text with this pattern has at most {most}"
    elif re.search(wanted, value) is None:
        yield f"{path}: {_short(value)} does not match {wanted}"


# ---------------------------------------------------------------------- values


def _key(value: Any) -> Any:
    """Equal for values that JSON calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _key(inner)) for name, inner in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return tuple([_key(inner) for inner in cast("list[Any]", value)])
    return (isinstance(value, bool), value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _one_of(names: list[str]) -> str:
    return " or ".join(
        f"{'an' if name[0] in 'aio' else 'a'} {name}" if name != "null" else name for name in names
    )


def _short(value: Any) -> str:
    """As JSON has it, cut: an answer may be large."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "number": _is_number,
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_CHECKS: Final[dict[str, _Check]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "minProperties": _size(dict, True, "entries"),
    "maxProperties": _size(dict, False, "entries"),
    "items": _items,
    "prefixItems": _prefix,
    "minItems": _size(list, True, "items"),
    "maxItems": _size(list, False, "items"),
    "uniqueItems": _unique,
    "minimum": _bound(lambda value, bound: value >= bound, "at least"),
    "maximum": _bound(lambda value, bound: value <= bound, "at most"),
    "exclusiveMinimum": _bound(lambda value, bound: value > bound, "above"),
    "exclusiveMaximum": _bound(lambda value, bound: value < bound, "below"),
    "multipleOf": _bound(_is_multiple, "a multiple of"),
    "minLength": _size(str, True, "characters"),
    "maxLength": _size(str, False, "characters"),
    "pattern": _pattern,
    "anyOf": _any_of,
    "oneOf": _one_form,
    "allOf": _all_of,
    "not": _not,
}

KEYWORDS: Final = frozenset(_CHECKS)
