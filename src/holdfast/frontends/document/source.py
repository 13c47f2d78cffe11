"""The text that a document was read from: its format, and where in it each value stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Format: TypeAlias = Literal["json", "yaml"]
FORMATS: Final = ("json", "yaml")


class TextProblem(ValueError):
    """The text cannot be read, or not all of it. `line` and `column` count from 1."""

    def __init__(self, rule: str, message: str, line: int, column: int, fix: str) -> None:
        super().__init__(message)
        self.rule, self.message, self.line, self.column, self.fix = rule, message, line, column, fix


class TextPlace(NamedTuple):
    """`inline`: the text stands on one line as it is, so that a column inside of it can be told; it begins
    `indent` characters after the place, behind the quote."""

    line: int
    column: int
    inline: bool = False
    indent: int = 0


PlaceTable: TypeAlias = Mapping[tuple[tuple[str | int, ...], bool], TextPlace]
"""By path and whether the key is meant."""


class DocumentSource:
    """`find_places` reads the text a second time: only a document with problems pays for that."""

    def __init__(self, text: str, form: Format, find_places: Callable[[str], PlaceTable]) -> None:
        self.text = text
        self.form: Format = form
        self._find = find_places

    @cached_property
    def _places(self) -> PlaceTable:
        return self._find(self.text)

    def place(self, path: tuple[Any, ...], *, on_key: bool = False) -> TextPlace:
        """Of the value, or of the nearest value around it that is written down."""
        if on_key and (path, True) in self._places:
            return self._places[path, True]
        for size in range(len(path), -1, -1):
            found = self._places.get((path[:size], False))
            if found is not None:
                return found
        return TextPlace(1, 1)
