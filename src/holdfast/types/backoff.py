"""How long to wait between two attempts: longer each time, up to a maximum."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

_MAX_DOUBLINGS = 60  # beyond that a float may overflow, and every maximum is reached long before


class Backoff(NamedTuple):
    """`first` seconds after the first attempt, `factor` times as long after each further one, at most
    `longest`.

    `jitter`: the random part of a pause, so that many clients that failed together do not retry together.
    """

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0

    def pause(self, attempt: int, chance: float = 0.0) -> float:
        """The pause after that attempt, counted from 1; `chance`: from 0 to 1, random or from a hash."""
        whole = min(self.first * self.factor ** min(attempt - 1, _MAX_DOUBLINGS), self.longest)
        return whole * (1.0 - self.jitter * chance)

    def pauses(self) -> Iterator[float]:
        """The pauses after each attempt, without jitter."""
        return map(self.pause, count(1))
