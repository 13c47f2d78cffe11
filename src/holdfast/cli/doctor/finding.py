"""A finding of `doctor`."""

from __future__ import annotations

from typing import Final

import msgspec

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
SHOWN: Final = 5


class Finding(msgspec.Struct, frozen=True):
    """The result of one check, and what to do if it failed."""

    check: str
    state: str
    said: str
    todo: str = ""
    about: list[str] = []


def few(things: list[str]) -> list[str]:
    """The first ones, and how many more there are."""
    more = len(things) - SHOWN
    return things[:SHOWN] + ([f"and {more} more"] if more > 0 else [])
