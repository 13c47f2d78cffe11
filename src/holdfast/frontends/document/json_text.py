"""Reads JSON: duplicate keys, NaN and half surrogates are refused, and each value has a place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json import decoder
from typing import Any, Final, NoReturn, cast

from holdfast.frontends.document.limits import MAX_DEPTH
from holdfast.frontends.document.source import Place, PlaceTable

_scan_string: Callable[[str, int, bool], tuple[str, int]] = getattr(decoder, "scanstring")  # noqa: B009


class TextProblem(ValueError):
    """The text cannot be read. `line` and `column` count from 1."""

    def __init__(self, rule: str, message: str, line: int, column: int, fix: str = "") -> None:
        super().__init__(message)
        self.rule, self.message, self.line, self.column, self.fix = rule, message, line, column, fix


class _DuplicateKey(ValueError):
    pass


class _NotANumber(ValueError):
    pass


def read_json(text: str) -> Any:
    """Raises TextProblem."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise TextProblem("json", f"this is not JSON: {error.msg}", error.lineno, error.colno) from None
    except RecursionError:
        raise TextProblem("document-depth", f"it is nested more than {MAX_DEPTH} levels deep", 1, 1) from None
    except (_DuplicateKey, _NotANumber):
        _Scanner(text).scan()
        raise  # pragma: no cover - the scanner raises
    except ValueError as error:  # thousands of digits
        raise TextProblem("number-range", f"a number cannot be read: {error}", 1, 1) from None


def places_of_json(text: str) -> PlaceTable:
    scanner = _Scanner(text)
    scanner.scan()
    return scanner.places


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _DuplicateKey
    return found


def _constant(_text: str) -> NoReturn:
    raise _NotANumber


_SPACE: Final = re.compile(r"[ \t\n\r]*")
_PLAIN: Final = re.compile(r"[^\s,\]}]+")


class _Scanner:
    """Walks over text that is valid JSON except for duplicate keys and NaN, which it refuses."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.places: dict[tuple[tuple[str | int, ...], bool], Place] = {}
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]

    def scan(self) -> None:
        self._value(self._skip(0), ())

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
            self.places[path, False] = Place(line, column, inline, 1)
            return end
        self.places[path, False] = Place(line, column)
        if sign == "{":
            return self._items(at, path)
        if sign == "[":
            return self._list(at, path)
        plain = cast("re.Match[str]", _PLAIN.match(self.text, at))
        if plain[0] in ("NaN", "Infinity", "-Infinity"):
            raise TextProblem("number", f"{plain[0]} is no JSON number", line, column, "write null, or text")
        return plain.end()

    def _items(self, at: int, path: tuple[str | int, ...]) -> int:
        at = self._skip(at + 1)
        while self.text[at] != "}":
            name, after = _scan_string(self.text, at + 1, True)
            here = (*path, name)
            line, column = self._place(at)
            if (here, True) in self.places:
                raise TextProblem(
                    "duplicate-key", f"the key {name!r} stands twice in this object", line, column,
                    "remove one of them",
                )  # fmt: skip
            self.places[here, True] = Place(line, column, True, 1)
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
