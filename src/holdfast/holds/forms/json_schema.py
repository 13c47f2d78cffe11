"""Whether the data of an answer fits the JSON Schema of its hold: every problem, each with its path.

The library jsonschema decides (2020-12, ADR 55); the words are ours, by a table over its keywords.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Final, cast

from holdfast.holds.forms.money import number_text
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import MAX_TEXT, matches

NOTHING: Final = "nothing is allowed here"
MOST_PROBLEMS: Final = 100
MOST_STEPS: Final = 200_000
"""Schemas that are applied to values, for one value with all that is in it: a few seconds."""
_MOST_CHARACTERS: Final = 1_000
_MOST_SHOWN: Final = 20
_ENUM_STEP: Final = 50  # members of an enum that are compared in the time of one step

_Errors = Iterator[Any]
_Check = Callable[[Any, Any, Any, Mapping[str, Any]], _Errors]


def problems_in(value: Any, schema: Any) -> list[str]:
    """What is wrong with a JSON value, as `data.items[2].price: ...`; none: it is valid.

    An invalid schema makes every value invalid: nothing may pass unchecked."""
    faults = schema_faults(schema)
    if faults:
        return [f"the hold's {fault}" for fault in faults]
    left = _left.set([MOST_STEPS])
    found: list[str] = []
    try:
        for error in _validator()(schema).iter_errors(value):
            if len(found) == MOST_PROBLEMS:
                return [*found, f"data: has more than {MOST_PROBLEMS} problems"]
            found += (clean_end(text) for text in _texts(error))
    except RecursionError:
        return ["data: is nested too deeply to be compared"]
    except _TooManySteps:
        return [*found, f"data: is too large for its schema: it takes more than {MOST_STEPS:,} comparisons"]
    finally:
        _left.reset(left)
    return found


def clean_end(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"


class _TooManySteps(Exception):
    pass


# What is left of the steps of one call; a caller chooses the value, and often the schema.
_left: ContextVar[list[int]] = ContextVar("steps of a validation")


@cache
def _validator() -> Any:
    """The library's checks for known keywords, and ours where its message is too short or its result not
    exact. Imported with the first answer: it takes longer than everything else that a small program loads."""
    known: dict[str, Any] = import_module("jsonschema").Draft202012Validator.VALIDATORS
    return import_module("jsonschema.validators").create(
        meta_schema={},
        validators={keyword: _OWN.get(keyword, known[keyword]) for keyword in _TEXTS},
        type_checker=import_module("jsonschema").Draft202012Validator.TYPE_CHECKER,
        applicable_validators=_ordered,
    )


def _ordered(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """In the order of the table, because a stored schema has lost its own order. It is asked each time that a
    schema is applied to a value, so the steps are counted here."""
    left = _left.get([MOST_STEPS])
    left[0] -= 1 + len(schema.get("enum", ())) // _ENUM_STEP
    if left[0] < 0:
        raise _TooManySteps
    return [(each, schema[each]) for each in _TEXTS if each in schema]


def _error(message: str, *path: str | int) -> Any:
    return import_module("jsonschema").ValidationError(message, path=path)


# ---------------------------------------------------------------------- our own checks


def _inner(validator: Any, value: Any, schema: Any, at: str | int) -> _Errors:
    """The library does not report the path of a value under a `false` schema."""
    if schema is False:
        yield _error(NOTHING, at)
    elif not _is_plainly_typed(validator, value, schema):
        yield from validator.descend(value, schema, path=at)


def _is_plainly_typed(validator: Any, value: Any, schema: Any) -> bool:
    """Whether nothing but a type is asked for, and it is that: most values of large data are."""
    if not isinstance(schema, dict):
        return False
    asked = cast("dict[str, Any]", schema)
    kind = asked.get("type")
    alone = isinstance(kind, str) and KEYWORDS.isdisjoint(asked.keys() - {"type"})
    return alone and validator.is_type(value, kind)


def _properties(validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    if isinstance(value, dict):
        for name, schema in wanted.items():
            if name in value:
                yield from _inner(validator, value[name], schema, name)


def _prefix(validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    if isinstance(value, list):
        for index, (item, schema) in enumerate(zip(cast("list[Any]", value), wanted, strict=False)):
            yield from _inner(validator, item, schema, index)


def _required(_validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    if isinstance(value, dict):
        yield from (_error("is missing", name) for name in wanted if name not in value)


def _additional(validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]) -> _Errors:
    if not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name, inner in cast("dict[str, Any]", value).items():
        if name in known:
            continue
        if wanted is False:
            yield _error("is not an allowed field", name)
        else:
            yield from _inner(validator, inner, wanted, name)


def _items(validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]) -> _Errors:
    if isinstance(value, list):
        first = len(schema.get("prefixItems", ()))
        for index, item in enumerate(cast("list[Any]", value)[first:], first):
            yield from _inner(validator, item, wanted, index)


def _unique(_validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    if wanted and isinstance(value, list):
        seen: dict[Any, int] = {}
        for index, item in enumerate(cast("list[Any]", value)):
            first = seen.setdefault(_key(item), index)
            if first != index:
                yield _error(f"{_short(item)} is a duplicate of [{first}]", index)


def _any_of(validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any]) -> _Errors:
    """A choice of constants is compared at once: the library makes an error of each that it is not."""
    if isinstance(value, str) and all(map(_is_constant, wanted)):
        texts = [each["const"] for each in wanted]
        left = _left.get([MOST_STEPS])
        left[0] -= len(texts) // _ENUM_STEP
        if value in texts:
            return
        wanted = wanted[:_MOST_SHOWN]
    known: dict[str, Any] = import_module("jsonschema").Draft202012Validator.VALIDATORS
    yield from known["anyOf"](validator, wanted, value, schema)


def _is_constant(schema: Any) -> bool:
    """Whether it allows one text and nothing else; titles do not count."""
    if not isinstance(schema, dict) or "const" not in schema:
        return False
    return KEYWORDS.isdisjoint(cast("dict[str, Any]", schema).keys() - {"const"})


def _multiple(_validator: Any, step: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    """With exact numbers: the library divides floats, for which 0.3 is not a multiple of 0.1."""
    from fractions import Fraction

    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if number and Fraction(str(value)) % Fraction(str(step)) != 0:
        yield _error(f"{_short(value)} is not a multiple of {_short(step)}")


def _pattern(_validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    if not isinstance(value, str):
        return
    problem = pattern_mismatch(wanted, value)
    if problem:
        yield _error(problem)


def pattern_mismatch(pattern: str, text: str) -> str:
    """Why a text does not match the pattern of its question; empty if it does."""
    if len(text) > MAX_TEXT:
        return f"has {len(text)} characters; a text with a pattern has at most {MAX_TEXT}"
    try:
        return "" if matches(pattern, text) else f"{_short(text)} does not match {pattern}"
    except TimeoutError:
        return f"{_short(text)} cannot be checked: the pattern {pattern} takes too long on it"


_OWN: Final[dict[str, _Check]] = {
    "properties": _properties,
    "prefixItems": _prefix,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "uniqueItems": _unique,
    "anyOf": _any_of,
    "multipleOf": _multiple,
    "pattern": _pattern,
}


# ---------------------------------------------------------------------- words


def _texts(error: Any) -> Iterator[str]:
    where = _place(error.absolute_path)
    if error.validator is None:  # the schema is `false`
        yield f"{where}: {NOTHING}"
        return
    yield f"{where}: {_TEXTS[error.validator](error)}"


def _place(path: Iterable[str | int]) -> str:
    return "data" + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)


def _own_message(error: Any) -> str:
    return error.message


def _no_type(error: Any) -> str:
    wanted = error.validator_value
    return f"{_short(error.instance)} is not {_one_of([wanted] if isinstance(wanted, str) else list(wanted))}"


def _no_value(error: Any) -> str:
    values = error.validator_value
    shown = ", ".join(_short(each) for each in values[:_MOST_SHOWN])
    more = f" and {len(values) - _MOST_SHOWN:,} more" if len(values) > _MOST_SHOWN else ""
    return f"{_short(error.instance)} is not one of {shown}{more}"


def _size(what: str, than: str) -> Callable[[Any], str]:
    return lambda error: f"has {len(error.instance)} {what}, {than} than {error.validator_value}"


def _bound(what: str) -> Callable[[Any], str]:
    return lambda error: f"{_short(error.instance)} is not {what} {_short(error.validator_value)}"


def _no_form(error: Any) -> str:
    ways: dict[int, list[str]] = {}
    for each in error.context:
        ways.setdefault(each.schema_path[0], []).extend(_texts(each))
    tried = "; or ".join(", ".join(problems) for problems in islice(ways.values(), _MOST_SHOWN))
    return f"{_short(error.instance)} matches none of the {len(error.validator_value)} alternatives ({tried})"


def _not_one_form(error: Any) -> str:
    fitting = sum(_validator()(each).is_valid(error.instance) for each in error.validator_value)
    if not fitting:
        return _no_form(error)
    return f"{_short(error.instance)} matches {fitting} alternatives, but must match exactly one"


def _key(value: Any) -> Any:
    """Equal for equal JSON values: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _key(inner)) for name, inner in cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return tuple([_key(inner) for inner in cast("list[Any]", value)])
    return (isinstance(value, bool), value)


def _one_of(names: list[str]) -> str:
    return " or ".join(
        f"{'an' if name[0] in 'aio' else 'a'} {name}" if name != "null" else name for name in names
    )


def _short(value: Any) -> str:
    """As JSON, shortened: an answer may be large."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    text = number_text(value) if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


_TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "type": _no_type,
    "enum": _no_value,
    "const": lambda error: f"{_short(error.instance)} is not {_short(error.validator_value)}",
    "properties": _own_message,
    "required": _own_message,
    "additionalProperties": _own_message,
    "minProperties": _size("entries", "fewer"),
    "maxProperties": _size("entries", "more"),
    "items": _own_message,
    "prefixItems": _own_message,
    "minItems": _size("items", "fewer"),
    "maxItems": _size("items", "more"),
    "uniqueItems": _own_message,
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "exclusiveMinimum": _bound("above"),
    "exclusiveMaximum": _bound("below"),
    "multipleOf": _own_message,
    "minLength": _size("characters", "fewer"),
    "maxLength": _size("characters", "more"),
    "pattern": _own_message,
    "anyOf": _no_form,
    "oneOf": _not_one_form,
    "allOf": _own_message,
    "not": lambda error: f"{_short(error.instance)} matches a schema that is not allowed",
}

KEYWORDS: Final = frozenset(_TEXTS)
