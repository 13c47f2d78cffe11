"""Whether the data of an answer fits the JSON Schema of its hold: its problems, each with its path.

The library jsonschema decides (2020-12, ADR 55); the words are ours, by a table over its keywords. Schema and
data come from outside: what one check may cost is counted (`schema_budget`), and its problems are few and
short.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Final, cast

from holdfast.holds.forms.money import number_text
from holdfast.holds.forms.schema_budget import (
    MAX_COST,
    PER_SCHEMA,
    SchemaBudget,
    SchemaBudgetError,
    processor_time,
    schema_budget,
)
from holdfast.holds.forms.short_repr import short_schema, short_value
from holdfast.model.checks.json_schemas import schema_faults
from holdfast.model.checks.regex_safety import MAX_TEXT, matches

NOTHING: Final = "nothing is allowed here"
MAX_PROBLEMS: Final = 100
TOO_MUCH: Final = (
    f"data: is too large for its schema: it takes more than {MAX_COST // PER_SCHEMA:,} comparisons; "
    "send less data, or use a schema with fewer alternatives"
)
_LISTED: Final = 20
"""Of the values of an enum, and of the alternatives that do not match, in one problem."""
_LONGEST: Final = 1_000
_LONGEST_PLACE: Final = 200

_Errors = Iterator[Any]
_Check = Callable[[Any, Any, Any, Mapping[str, Any]], _Errors]


def problems_in(value: Any, schema: Any) -> list[str]:
    """What is wrong with a JSON value, as `data.items[2].price: ...`; none: it is valid. At most the first
    `MAX_PROBLEMS`, and one more that says so.

    An invalid schema makes every value invalid: nothing may pass unchecked. So does one that takes too long
    to be compared with the value."""
    try:
        with schema_budget() as budget:
            budget.spend(0)
            faults = schema_faults(schema)
            if faults:
                return _few(f"the hold's {_cut(fault, _LONGEST)}" for fault in faults)
            budget.begin(schema)
            errors = _validator()(short_schema(schema)).iter_errors(short_value(value))
            return _few(text for error in errors for text in _texts(error))
    except RecursionError:
        return ["data: is nested too deeply to be compared"]
    except SchemaBudgetError:
        return [TOO_MUCH]


def _few(problems: Iterable[str]) -> list[str]:
    found = list(islice(problems, MAX_PROBLEMS + 1))
    if len(found) > MAX_PROBLEMS:
        found[MAX_PROBLEMS] = f"data: has more than {MAX_PROBLEMS} problems"
    return found


@cache
def _validator() -> Any:
    """The library's checks for known keywords, and ours where its message is too short, its result not exact
    or its cost not counted. Imported with the first answer: it takes longer than everything else that a small
    program loads."""
    known: dict[str, Any] = import_module("jsonschema").Draft202012Validator.VALIDATORS
    return import_module("jsonschema.validators").create(
        meta_schema={},
        validators={keyword: _OWN.get(keyword, known[keyword]) for keyword in KEYWORDS},
        type_checker=import_module("jsonschema").Draft202012Validator.TYPE_CHECKER,
        applicable_validators=_counted,
    )


def _counted(schema: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The library asks for the keywords of a schema each time that it compares a value with it."""
    return SchemaBudget.current().keywords(schema)


def _error(message: str, *path: str | int) -> Any:
    return import_module("jsonschema").ValidationError(message, path=path)


# ---------------------------------------------------------------------- our own checks


def _inner(validator: Any, value: Any, schema: Any, at: str | int) -> _Errors:
    """The library does not report the path of a value under a `false` schema."""
    if schema is False:
        yield _error(NOTHING, at)
        return
    for error in _compared(validator, value, schema):
        error.path.appendleft(at)
        yield error


def _compared(validator: Any, value: Any, schema: Any) -> _Errors:
    """As `descend` of the library, without the new validator that it makes each time to follow references."""
    if isinstance(schema, bool):
        yield from () if schema else validator.descend(value, schema)
        return
    for keyword, wanted in _counted(schema):
        for error in validator.VALIDATORS[keyword](validator, wanted, value, schema) or ():
            if not error.schema_path:  # a new one
                error.validator, error.validator_value, error.instance = keyword, wanted, value
            error.schema_path.appendleft(keyword)
            yield error


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
        budget = SchemaBudget.current()
        budget.spend(len(cast("list[Any]", value)))
        seen: dict[Any, int] = {}
        for index, item in enumerate(cast("list[Any]", value)):
            first = seen.setdefault(budget.key(item), index)
            if first != index:
                yield _error(f"{_short(item)} is a duplicate of [{first}]", index)


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
    """Why a text does not match the pattern of its question; empty if it does. Raises SchemaBudgetError."""
    if len(text) > MAX_TEXT:
        return f"has {len(text)} characters; a text with a pattern has at most {MAX_TEXT}"
    try:
        with processor_time():
            fits = matches(pattern, text)
        return "" if fits else f"{_short(text)} does not match {pattern}"
    except TimeoutError:
        return f"{_short(text)} cannot be checked: the pattern {pattern} takes too long on it"


def _enum(_validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    """By their hashes: the library compares with each of the values."""
    budget = SchemaBudget.current()
    if budget.key(value) not in budget.kept_keys(wanted):
        yield _error("")


def _const(_validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    budget = SchemaBudget.current()
    if budget.key(value) != budget.kept_key(wanted):
        yield _error("")


def _any_of(validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    budget = SchemaBudget.current()
    constants = budget.kept_constants(wanted)
    if constants is not None and budget.key(value) in constants:
        return
    errors = _misfits(validator, wanted if constants is None else wanted[:_LISTED], value)
    if errors is not None:
        yield import_module("jsonschema").ValidationError("", context=errors)


def _misfits(validator: Any, wanted: Any, value: Any) -> list[Any] | None:
    """Why none of the alternatives matches, for the first of them; None: one does."""
    found: list[Any] = []
    for index, schema in enumerate(wanted):
        errors = list(islice(_compared(validator, value, schema), _LISTED if index < _LISTED else 1))
        if not errors:
            return None
        SchemaBudget.current().spend(len(errors) * PER_SCHEMA)
        if index < _LISTED:
            for error in errors:
                error.schema_path.appendleft(index)
            found += errors
    return found


def _one_of_all(validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]) -> _Errors:
    fitting = sum(next(_compared(validator, value, schema), None) is None for schema in wanted)
    SchemaBudget.current().spend((len(wanted) - fitting) * PER_SCHEMA)
    if fitting == 0:
        errors = _misfits(validator, wanted[:_LISTED], value)
        yield import_module("jsonschema").ValidationError("", context=errors or [])
    elif fitting > 1:
        yield _error(f"{_short(value)} matches {fitting} alternatives, but must match exactly one")


_OWN: Final[dict[str, _Check]] = {
    "enum": _enum,
    "const": _const,
    "anyOf": _any_of,
    "oneOf": _one_of_all,
    "properties": _properties,
    "prefixItems": _prefix,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "uniqueItems": _unique,
    "multipleOf": _multiple,
    "pattern": _pattern,
}


# ---------------------------------------------------------------------- words


def _texts(error: Any) -> Iterator[str]:
    where = _cut(_place(error.absolute_path), _LONGEST_PLACE)
    # None: the schema is `false`.
    text = NOTHING if error.validator is None else _TEXTS[error.validator](error)
    yield _cut(f"{where}: {text}", _LONGEST)


def _place(path: Iterable[str | int]) -> str:
    return "data" + "".join(f"[{each}]" if isinstance(each, int) else f".{_cut(each, 80)}" for each in path)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _own_message(error: Any) -> str:
    return error.message


def _no_type(error: Any) -> str:
    wanted = error.validator_value
    return f"{_short(error.instance)} is not {_one_of([wanted] if isinstance(wanted, str) else list(wanted))}"


def _no_value(error: Any) -> str:
    values = error.validator_value
    listed = ", ".join(_short(each) for each in values[:_LISTED])
    more = f" and {len(values) - _LISTED:,} more" if len(values) > _LISTED else ""
    return f"{_short(error.instance)} is not one of {listed}{more}"


def _size(what: str, than: str) -> Callable[[Any], str]:
    return lambda error: f"has {len(error.instance)} {what}, {than} than {error.validator_value}"


def _bound(what: str) -> Callable[[Any], str]:
    return lambda error: f"{_short(error.instance)} is not {what} {_short(error.validator_value)}"


def _no_form(error: Any) -> str:
    ways: dict[int, list[str]] = {}
    for each in error.context:
        ways.setdefault(each.schema_path[0], []).extend(_texts(each))
    tried = "; or ".join(", ".join(problems) for problems in ways.values())
    count = len(error.validator_value)
    more = f"; and {count - _LISTED:,} more" if count > _LISTED else ""
    return f"{_short(error.instance)} matches none of the {count:,} alternatives ({tried}{more})"


def _not_one_form(error: Any) -> str:
    return error.message or _no_form(error)


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
    return _cut(number_text(value) if isinstance(value, float) else repr(value), 60)


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

KEYWORDS: Final = tuple(_TEXTS)
