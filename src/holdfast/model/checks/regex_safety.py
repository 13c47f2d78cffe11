"""Regular expressions that authors of questions write, matched with a time limit.

An expression such as `(a+)+$` can take exponentially long on a text that almost matches. A match is stopped
after `TIME_LIMIT`, by the library `regex` (the standard library has no such limit). When a question is
declared, its pattern is tried on a few texts of the maximum length, so that its author sees the problem.

Repeat counts such as `(a{1000}){1000}` are written out when an expression is compiled, which takes time and
memory without a limit: what they come to is counted in the text before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from regex import Pattern

MAX_PATTERN: Final = 500
MAX_TEXT: Final = 1_000
MAX_REPEATED: Final = 10_000
"""Characters and classes of a pattern whose repeat counts are written out."""
TIME_LIMIT: Final = 0.1
"""Seconds of processor time that one match may take."""

_PROBE_UNITS: Final = ("a", "A", "1", " ", "-", ".", "_", "ab", "a-", "1.", "x ", "a@a.")
_CACHED: Final = 500
_PART: Final = re.compile(
    r"(?P<count>\{(?P<least>[0-9]*)(?:,(?P<most>[0-9]*))?\})|\[\^?\]?(?:\\.|[^\]\\])*\]|\\.|.", re.DOTALL
)
# With these an expression is read in another way: without spaces and comments, or with classes in classes.
_OTHER_SYNTAX: Final = re.compile(r"\(\?(?:#|[a-zL0-9-]*[xV])")


def pattern_problem(pattern: str) -> str | None:
    """Why the pattern cannot be used; None if it can."""
    if len(pattern) > MAX_PATTERN:
        return f"has {len(pattern)} characters; a pattern has at most {MAX_PATTERN}"
    return _problem(pattern)


def _repeat_problem(pattern: str) -> str | None:
    if "{" not in pattern:
        return None
    if _OTHER_SYNTAX.search(pattern):
        return "has a repeat count, and a comment or the flag x or V: remove one of them"
    if _repeated_size(pattern) > MAX_REPEATED:
        return f"repeats to more than {MAX_REPEATED:,} characters: use smaller repeat counts"
    return None


def _repeated_size(pattern: str) -> int:
    """How many characters and classes it has when its repeat counts are written out; not less."""
    outer: list[int] = []
    size = last = 0
    for part in _PART.finditer(pattern):
        text, count = part[0], part["count"]
        if count is not None and count != "{}":
            times = max(_count(part["least"]), _count(part["most"]), 1)
            size += last * (times - 1)
            last *= times
        elif text == "(":
            outer.append(size)
            size = last = 0
        elif text == ")" and outer:
            last = max(size, 1)
            size = outer.pop() + last
        elif text not in "*+?":
            size, last = size + 1, 1
    return size + sum(outer)


def _count(digits: str | None) -> int:
    """A number that is too long to be read quickly is too large as well."""
    return int(digits[:9]) if digits else 0


@lru_cache(_CACHED)
def _problem(pattern: str) -> str | None:
    too_large = _repeat_problem(pattern)
    if too_large is not None:
        return too_large
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


@lru_cache(_CACHED)
def _compiled(pattern: str) -> Pattern[str]:
    import regex

    return regex.compile(pattern)
