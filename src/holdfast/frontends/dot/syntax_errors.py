"""Collects the errors and warnings of a text while it is parsed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from holdfast.errors import PipelineSyntaxError
from holdfast.frontends.dot.diagnostics import Diagnostic, DiagnosticSeverity
from holdfast.frontends.dot.document import NOWHERE, SourceLocation, place_at

SYNTAX: Final = "syntax"
LENIENT: Final = "syntax_lenient"
MOST_ERRORS: Final = 20


class TooManyError(Exception):
    """There are too many errors: the parser stops here."""


class Faults:
    """One error per line, because the rest of a broken line gives no new information, and at most twenty in
    all. The same warning is reported once per line."""

    def __init__(self, source: str, path: str, *, strict: bool) -> None:
        self.lines = _lines_of(source)
        self._path = path
        self._strict = strict
        self._broken: set[int] = set()
        self._reported: set[tuple[str, int]] = set()
        self.found: list[Diagnostic] = []

    def place(self, offset: int) -> SourceLocation:
        return place_at(self.lines, offset)

    def line(self, offset: int) -> int:
        return bisect_right(self.lines, offset)

    def error(self, message: str, at: int | SourceLocation, *, fix: str) -> None:
        place = self.place(at) if isinstance(at, int) else at
        if place.line in self._broken:
            return
        self._broken.add(place.line)
        self._add(SYNTAX, DiagnosticSeverity.error, message, place, fix)
        if len(self._broken) >= MOST_ERRORS:
            raise TooManyError

    def forget(self) -> None:
        """Discard what was found so far, because the text is not a pipeline."""
        self.found.clear()
        self._broken.clear()

    def lenient(self, message: str, at: int | SourceLocation, *, fix: str) -> None:
        """Report a deviation from the grammar whose meaning is clear: an error only if `strict`."""
        place = self.place(at) if isinstance(at, int) else at
        if (message, place.line) in self._reported:
            return
        self._reported.add((message, place.line))
        self._add(
            LENIENT,
            DiagnosticSeverity.error if self._strict else DiagnosticSeverity.warning,
            message,
            place,
            fix,
        )
        if self._strict and len(self.found) >= MOST_ERRORS:
            raise TooManyError

    def warn(self, rule: str, message: str, place: SourceLocation, *, fix: str) -> None:
        self._add(rule, DiagnosticSeverity.warning, message, place, fix)

    def raise_if_any(self) -> None:
        if any(one.severity is DiagnosticSeverity.error for one in self.found):
            raise syntax_error_for(sorted(self.found, key=lambda one: (one.place.line, one.place.column)))

    def _add(
        self, rule: str, severity: DiagnosticSeverity, message: str, place: SourceLocation, fix: str
    ) -> None:
        found = Diagnostic(
            rule=rule, severity=severity, message=message, fix=fix, place=place, path=self._path
        )
        self.found.append(found)


def syntax_error_for(found: Sequence[Diagnostic]) -> PipelineSyntaxError:
    """Lists the errors among the diagnostics."""
    errors = [str(one) for one in found if one.severity is DiagnosticSeverity.error]
    more = ["Only the first errors are listed."] if len(errors) >= MOST_ERRORS else []
    return PipelineSyntaxError("\n".join(errors + more), diagnostics=tuple(found))


def unreadable_error(
    message: str, path: str, *, fix: str, place: SourceLocation = NOWHERE
) -> PipelineSyntaxError:
    """For a text that cannot be read at all."""
    one = Diagnostic(
        rule=SYNTAX, severity=DiagnosticSeverity.error, message=message, fix=fix, path=path, place=place
    )
    return syntax_error_for([one])


def _lines_of(source: str) -> list[int]:
    """Where each line begins."""
    starts = [0]
    at = source.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = source.find("\n", at + 1)
    return starts
