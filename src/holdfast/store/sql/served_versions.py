"""The versions that a worker serves, in their order: what lies between two of them is skipped."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

import msgspec

# After a name, and before every name that continues it.
_JUST_AFTER = "\x01"
_AFTER_ALL = "\U0010ffff"
_REMEMBERED = 20


class Crowd(msgspec.Struct):
    """Remembers that many runs of other workers were before those of this one: so many claims more look for
    their versions at once, which saves the first question."""

    claims: int = 0

    def met(self) -> None:
        self.claims = _REMEMBERED

    def is_expected(self) -> bool:
        self.claims = max(0, self.claims - 1)
        return self.claims > 0


class ServedRanges:
    """Of `ClaimRequest.versions`: each is (first, end), without its end; none overlaps another."""

    def __init__(self, versions: Sequence[str] | None) -> None:
        self.ranges: list[tuple[str, str]] = [("", _AFTER_ALL)]
        if versions is not None:
            wanted = set(versions)
            one = {name for name in wanted if "-" not in name or name.partition("-")[0] not in wanted}
            begun = {name for name in wanted if "-" not in name}
            exact = [(name, after(name)) for name in one]
            # A point follows a hyphen in every store's order of text.
            self.ranges = sorted([*exact, *((f"{name}-", f"{name}.") for name in begun)])
        self._firsts = [first for first, _ in self.ranges]

    def has(self, version: str) -> bool:
        return self.next(version) == version

    def next(self, version: str) -> str | None:
        """The first name at or after this one that may be served."""
        place = bisect_right(self._firsts, version)
        if place and version < self.ranges[place - 1][1]:
            return version
        return self._firsts[place] if place < len(self._firsts) else None


def after(version: str) -> str:
    return version + _JUST_AFTER


@lru_cache(maxsize=16)
def served_ranges(versions: tuple[str, ...] | None) -> ServedRanges:
    return ServedRanges(versions)
