"""What `doctor` finds."""

from __future__ import annotations

from typing import Final

import msgspec

OK: Final = "ok"
WARN: Final = "warn"
FAIL: Final = "fail"
SHOWN: Final = 5


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at: how it is, and what to do where it is not as it should be."""

    check: str
    state: str
    said: str
    todo: str = ""
    about: list[str] = []


def few(things: list[str]) -> list[str]:
    """The first of many, and how many more."""
    more = len(things) - SHOWN
    return things[:SHOWN] + ([f"and {more} more"] if more > 0 else [])
