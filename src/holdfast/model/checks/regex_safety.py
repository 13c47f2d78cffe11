"""Regular expressions that authors of questions write, matched with a time limit.

An expression such as `(a+)+$` can take exponentially long on a text that almost matches. A match is stopped
after `TIME_LIMIT`, by the library `regex` (the standard library has no such limit). When a question is
declared, its pattern is tried on a few texts of the maximum length, so that its author sees the problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from regex import Pattern

MAX_PATTERN: Final = 500
MAX_TEXT: Final = 1_000
TIME_LIMIT: Final = 0.1
"""Seconds of processor time that one match may take."""

_PROBE_UNITS: Final = ("a", "A", "1", " ", "-", ".", "_", "ab", "a-", "1.", "x ", "a@a.")


def pattern_problem(pattern: str) -> str | None:
    """Why the pattern cannot be used; None if it can."""
    if len(pattern) > MAX_PATTERN:
        return f"has {len(pattern)} characters; a pattern has at most {MAX_PATTERN}"
    return _problem(pattern)


@cache
def _problem(pattern: str) -> str | None:
    # Imported with the first pattern: most programs have none.
    import regex

    try:
        compiled = regex.compile(pattern)
    except (regex.error, OverflowError, RecursionError, ValueError) as error:
        return f"is not a regular expression: {error}"
    for text in _probes(pattern):
        try:
            compiled.search(text, timeout=TIME_LIMIT)
        except TimeoutError:
            return (
                f"takes too long on a text such as {text[:8] + '…'!r}: a part repeats in more than one way; "
                "let each character lead one way, as in ^[a-z]+(-[a-z]+)*$"
            )
    return None


def _probes(pattern: str) -> Iterator[str]:
    """Texts that almost match: repeated letters of the pattern, and of what its classes may stand for."""
    own = dict.fromkeys(letter for letter in pattern if letter.isalnum())
    for unit in dict.fromkeys([*own, "".join(own), *_PROBE_UNITS]):
        if unit:
            yield (unit * MAX_TEXT)[: MAX_TEXT - 1] + "\x00"


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text. Raises TimeoutError if that takes too long. Call it only with
    a pattern for which `pattern_problem` is None."""
    return _compiled(pattern).search(text, timeout=TIME_LIMIT) is not None


@cache
def _compiled(pattern: str) -> Pattern[str]:
    import regex

    return regex.compile(pattern)
