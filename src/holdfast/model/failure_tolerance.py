"""How many items of a map may fail: as a count, as a share, or by how many must succeed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.types.text import clean_text

_SHARE = re.compile(r"\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%\s*")


class Tolerance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nothing given: no failure is tolerated. With `successes` alone, as many as leave that many."""

    count: int | None = None
    share: float | None = None  # percent of the items
    successes: int | None = None

    @property
    def given(self) -> bool:
        return self != Tolerance()

    def is_exceeded(self, failed: int, items: int) -> bool:
        if not self.given:
            return failed > 0
        return (
            (self.count is not None and failed > self.count)
            or (self.share is not None and failed * 100 > self.share * items)
            or (self.successes is not None and items - failed < self.successes)
        )

    def is_short(self, items: int) -> bool:
        """Whether there are fewer items than must succeed."""
        return self.successes is not None and items < self.successes

    def text(self, failed: int, items: int) -> str:
        """Why the map fails."""
        allowed = (
            f"{self.count} may"
            if self.count is not None
            else f"{self.share:g}% may"
            if self.share is not None
            else ""
        )
        least = f"{self.successes} must succeed" if self.successes is not None else ""
        return f"{failed} of {items} items failed; {' and '.join(each for each in (allowed, least) if each)}"


def _ignore(_what: str, _fix: str) -> None:
    """Checked before, by the schema of a document."""


def read_tolerance(failures: Any, successes: Any, wrong: Callable[[str, str], None] = _ignore) -> Tolerance:
    """`wrong` is told what cannot be read, and how to write it."""
    count = share = None
    if failures is not None:
        found = _SHARE.fullmatch(failures) if isinstance(failures, str) else None
        if found is not None and float(found[1]) <= 100:
            share = float(found[1])
        elif type(failures) is int and failures >= 0:
            count = failures
        else:
            wrong(
                f"tolerated_failures={clean_text(repr(failures), 40)} is neither a count nor a share",
                'write tolerated_failures=3, or tolerated_failures="10%"',
            )
    if successes is not None and (type(successes) is not int or successes < 0):
        wrong(
            f"min_successes={clean_text(repr(successes), 40)} is not a number of items",
            "write min_successes=5, or leave it out",
        )
        successes = None
    return Tolerance(count, share, successes)
