"""Reads JSON: duplicate keys, NaN and half surrogates are refused, and each value has a place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from json import decoder
from typing import Any, Final, cast

from holdfast.frontends.document.limits import (
    FEWER_VALUES,
    MAX_DEPTH,
    MAX_DOCUMENT_VALUES,
    TOO_MANY_VALUES,
    has_more_values,
)
from holdfast.frontends.document.source import PlaceTable, TextPlace, TextProblem
from holdfast.types.text import clean_text

_scan_string: Callable[[str, int, bool], tuple[str, int]] = getattr(decoder, "scanstring")  # noqa: B009


def read_json(
    text: str, problems: list[TextProblem] | None = None, *, most: int = MAX_DOCUMENT_VALUES
) -> Any:
    """Raises TextProblem. `problems`: gets those with which the rest can still be read."""
    doubts = list[Any]()
    try:
        data = json.loads(text, object_pairs_hook=partial(_object, doubts), parse_constant=doubts.append)
    except json.JSONDecodeError as error:
        raise TextProblem(
            "json", f"this is not JSON: {error.msg}", error.lineno, error.colno, "correct the text there"
        ) from None
    except RecursionError:
        raise TextProblem(
            "document-depth", f"it is nested more than {MAX_DEPTH} levels deep", 1, 1,
            "use a sub-flow, or flatter data",
        ) from None  # fmt: skip
    except ValueError as error:  # thousands of digits
        raise TextProblem(
            "number-range", f"a number cannot be read: {error}", 1, 1, "write it as text"
        ) from None
    if has_more_values(data, most):
        raise TextProblem("document-size", TOO_MANY_VALUES, 1, 1, FEWER_VALUES)
    if doubts:
        collected = _Scanner(text).scan().problems
        if problems is None:
            raise collected[0]
        problems += collected
    return data


def places_of_json(text: str) -> PlaceTable:
    return _Scanner(text).scan().places


def _object(doubts: list[Any], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        doubts.append(found)
    return found


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r"[^\s,\]}]+")


class _Scanner:
    """Walks over text that is valid JSON except for duplicate keys and NaN, which are `problems`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[tuple[tuple[str | int, ...], bool], TextPlace] = {}
        self.problems: list[TextProblem] = []
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def scan(self) -> _Scanner:
        # What is nested deeper than a document may be has the place of what is around it.
        with suppress(RecursionError):
            self._value(self._skip(0), ())
        return self

    def _place(self, at: int) -> tuple[int, int]:
        from bisect import bisect_right

        line = bisect_right(self._lines, at)
        return line, at - self._lines[line - 1] + 1

    def _skip(self, at: int) -> int:
        return cast("re.Match[str]", _SPACE.match(self.text, at)).end()

    def _value(self, at: int, path: tuple[str | int, ...]) -> int:
        sign = self.text[at]
        line, column = self._place(at)
        if sign == '"':
            value, end = _scan_string(self.text, at + 1, True)
            inline = end - at - 2 == len(value)
            self.places[path, False] = TextPlace(line, column, inline, 1)
            return end
        self.places[path, False] = TextPlace(line, column)
        if sign == "{":
            return self._items(at, path)
        if sign == "[":
            return self._list(at, path)
        plain = cast("re.Match[str]", _PLAIN.match(self.text, at))
        if plain[0] in ("NaN", "Infinity", "-Infinity"):
            message = f"{plain[0]} is no JSON number"
            self.problems.append(TextProblem("number", message, line, column, "write null, or text"))
        return plain.end()

    def _items(self, at: int, path: tuple[str | int, ...]) -> int:
        at = self._skip(at + 1)
        while self.text[at] != "}":
            name, after = _scan_string(self.text, at + 1, True)
            here = (*path, name)
            line, column = self._place(at)
            if (here, True) in self.places:
                message = f"the key {clean_text(name, 80)!r} is given twice in this object"
                self.problems.append(
                    TextProblem("duplicate-key", message, line, column, "remove one of them")
                )
            self.places[here, True] = TextPlace(line, column, True, 1)
            at = self._skip(self._value(self._skip(self._skip(after) + 1), here))
            if self.text[at] == ",":
                at = self._skip(at + 1)
        return at + 1

    def _list(self, at: int, path: tuple[str | int, ...]) -> int:
        at, index = self._skip(at + 1), 0
        while self.text[at] != "]":
            at = self._skip(self._value(at, (*path, index)))
            index += 1
            if self.text[at] == ",":
                at = self._skip(at + 1)
        return at + 1
