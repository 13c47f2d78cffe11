"""Filters of placeholders: `{{amount | round(2)}}`, `{{note | default('none') | upper}}`.

A missing value passes every filter but `default` as it is. `default` also replaces null, which would be shown
as nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, cast

import msgspec

from holdfast.model.expressions import MISSING, ExprSyntaxError
from holdfast.model.expressions.lex import END, LITERAL, NAME, ExprToken, tokenize
from holdfast.model.expressions.visit_limit import CHARACTERS
from holdfast.model.template_text import as_text, json_bytes

MOST_FILTERS: Final = 4
_MOST_DIGITS: Final = 20
_MOST_SHOWN: Final = 100_000
_LONGEST_FORMAT: Final = 100
_READ_NOTHING: Final = frozenset({"default", "length", "first", "last"})
_READ_TEXT: Final = frozenset({"upper", "lower", "trim", "truncate"})
_MAKE_TEXT: Final = frozenset({"json", "join"})


class TemplateFilter(msgspec.Struct, frozen=True):
    name: str
    arguments: tuple[Any, ...] = ()

    def apply(self, value: object) -> object:
        """Raises ValueError or TypeError that says why it does not apply to this value."""
        if value is MISSING and self.name != "default":
            return MISSING
        return _FILTERS[self.name].apply(value, *self.arguments)

    def read(self, value: object) -> object:
        """The value as the filter reads it: of data, its text, which may be far longer than the data is wide.
        Raises what `apply` raises."""
        return as_text(value) if self.name in _READ_TEXT and value is not MISSING else value

    def visits(self, value: object) -> int:
        """How many values it reads of a list or mapping, before what is inside of them is known."""
        if self.name in _READ_NOTHING or not isinstance(value, (Mapping, Sequence)):
            return 0
        size = len(cast("Sequence[object]", value))
        if isinstance(value, (str, bytes, bytearray)):
            return size // CHARACTERS
        between = self.arguments[0] if self.name == "join" and self.arguments else ""
        return size + size * len(between) // CHARACTERS

    def made(self, result: object) -> int:
        """How many values it has read at any depth, by the text that it made of them."""
        return len(result) // CHARACTERS if self.name in _MAKE_TEXT and isinstance(result, str) else 0


class FilterSyntaxError(ValueError):
    """`at`: the position in the text that was given."""

    def __init__(self, problem: str, at: int, hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.at, self.hint = problem, at, hint


def parse_filters(text: str) -> tuple[TemplateFilter, ...]:
    """The filters of a placeholder, from the first `|` on. Raises FilterSyntaxError."""
    try:
        tokens = tokenize(text)
    except ExprSyntaxError as error:
        raise FilterSyntaxError(error.problem, error.column - 1, error.hint or "") from None
    found: list[TemplateFilter] = []
    position = 0
    while tokens[position].kind != END:
        if tokens[position].value != "|":
            raise _unexpected(tokens[position], "| before a filter")
        one, position = _filter(tokens, position + 1)
        found.append(one)
    if len(found) > MOST_FILTERS:
        raise FilterSyntaxError(f"{len(found)} filters", 0, f"a placeholder has at most {MOST_FILTERS}")
    return tuple(found)


def _filter(tokens: list[ExprToken], position: int) -> tuple[TemplateFilter, int]:
    word = tokens[position]
    name = ".".join(cast("tuple[str, ...]", word.value)) if word.kind == NAME else ""
    if name not in _FILTERS:
        raise _unexpected(word, "a filter", f"use one of {', '.join(_FILTERS)}")
    position += 1
    arguments: list[Any] = []
    if tokens[position].value == "(":
        arguments, position = _arguments(tokens, position + 1)
    problem = _FILTERS[name].problem(arguments)
    if problem:
        raise FilterSyntaxError(f"{name}: {problem}", word.column - 1, f"write {_FILTERS[name].example}")
    return TemplateFilter(name, tuple(arguments)), position


def _arguments(tokens: list[ExprToken], position: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    while tokens[position].value != ")" or tokens[position].kind == LITERAL:
        if found:
            if tokens[position].value != ",":
                raise _unexpected(tokens[position], "',' or ')'")
            position += 1
        if tokens[position].kind != LITERAL:
            raise _unexpected(tokens[position], "a text, number, true, false or null")
        found.append(tokens[position].value)
        position += 1
    return found, position + 1


def _unexpected(token: ExprToken, expected: str, hint: str = "") -> FilterSyntaxError:
    return FilterSyntaxError(f"expected {expected}, found {token.describe()}", token.column - 1, hint)


def _default(value: object, other: object) -> object:
    return other if value is MISSING or value is None else value


def _upper(value: object) -> str:
    return as_text(value).upper()


def _lower(value: object) -> str:
    return as_text(value).lower()


def _trim(value: object) -> str:
    return as_text(value).strip()


def _length(value: object) -> int:
    if isinstance(value, (str, Mapping)) or _is_list(value):
        return len(cast("Sequence[object]", value))
    raise TypeError("only a text, a list or a mapping has a length")


def _first(value: object) -> object:
    return _item(value, 0)


def _last(value: object) -> object:
    return _item(value, -1)


def _item(value: object, index: int) -> object:
    if not isinstance(value, str) and not _is_list(value):
        raise TypeError("only a list or a text has a first and a last")
    items = cast("Sequence[object]", value)
    return items[index] if items else MISSING


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def _join(value: object, between: str = ", ") -> str:
    if not _is_list(value):
        raise TypeError("only a list can be joined")
    return between.join(as_text(item) for item in cast("Sequence[object]", value))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else json_bytes(value).decode()


def _round(value: object, digits: int = 0) -> object:
    """Half away from zero, as people round money; a number is read as it is written."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise TypeError("only a number can be rounded")
    exact = value if isinstance(value, Decimal) else Decimal(str(value))
    if not exact.is_finite():
        raise ValueError(f"{value} cannot be rounded")
    rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP)
    if digits == 0:
        return int(rounded)
    return rounded if isinstance(value, Decimal) else value if isinstance(value, int) else float(rounded)


def _date(value: object, form: str = "%Y-%m-%d") -> str:
    if isinstance(value, str):
        value = datetime.fromisoformat(value.strip())
    if not isinstance(value, (date, time)):
        raise TypeError("only a date or a text such as 2026-05-04T12:00:00Z is a date")
    return value.strftime(form)


def _truncate(value: object, most: int, end: str = "…") -> str:
    text = as_text(value)
    return text if len(text) <= most else text[: max(0, most - len(end))] + end[:most]


def _whole(most: int, least: int = 0) -> Callable[[Any], str]:
    def problem(value: Any) -> str:
        good = type(value) is int and least <= value <= most
        return "" if good else f"{value!r} is not a whole number from {least} to {most:,}"

    return problem


def _text(value: Any) -> str:
    good = isinstance(value, str) and len(value) <= _LONGEST_FORMAT
    return "" if good else f"{value!r} is not a text of at most {_LONGEST_FORMAT} characters"


def _anything(_value: Any) -> str:
    return ""


class _Filter(msgspec.Struct, frozen=True):
    """`takes`: a check of each argument; the first `needs` must be given."""

    apply: Callable[..., object]
    example: str
    takes: tuple[Callable[[Any], str], ...] = ()
    needs: int = 0

    def problem(self, arguments: list[Any]) -> str:
        if not self.needs <= len(arguments) <= len(self.takes):
            most = "" if self.needs == len(self.takes) else f" to {len(self.takes)}"
            return f"it takes {self.needs}{most} arguments, not {len(arguments)}"
        checked = zip(self.takes, arguments, strict=False)
        return next(filter(None, (check(value) for check, value in checked)), "")


_FILTERS: Final[Mapping[str, _Filter]] = {
    "default": _Filter(_default, "default('none')", (_anything,), 1),
    "upper": _Filter(_upper, "upper"),
    "lower": _Filter(_lower, "lower"),
    "trim": _Filter(_trim, "trim"),
    "length": _Filter(_length, "length"),
    "first": _Filter(_first, "first"),
    "last": _Filter(_last, "last"),
    "join": _Filter(_join, "join(', ')", (_text,)),
    "json": _Filter(_json, "json"),
    "round": _Filter(_round, "round(2)", (_whole(_MOST_DIGITS),)),
    "date": _Filter(_date, "date('%d.%m.%Y')", (_text,)),
    "truncate": _Filter(_truncate, "truncate(80)", (_whole(_MOST_SHOWN, 1), _text), 1),
}
FILTERS: Final = tuple(_FILTERS)
