"""How long to wait between two tries of the same thing: longer each time, up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

_MAX_DOUBLINGS = 60  # beyond that a float may overflow, and every bound is long reached


class Backoff(NamedTuple):
    """`first` seconds after the first try, `factor` times as long after each further one, at most `longest`.

    `jitter`: the part of a pause that is left to chance, so that many clients that failed together do not
    come back together.
    """

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0

    def pause(self, attempt: int, chance: float = 0.0) -> float:
        """After the attempt with that number, from 1 on; `chance`: from 0 to 1, by dice or by a hash."""
        whole = min(self.first * self.factor ** min(attempt - 1, _MAX_DOUBLINGS), self.longest)
        return whole * (1.0 - self.jitter * chance)

    def pauses(self) -> Iterator[float]:
        """One after the other, without chance."""
        return map(self.pause, count(1))
