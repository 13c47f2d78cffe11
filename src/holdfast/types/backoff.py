"""How long to wait between two attempts: back-off and jitter, of everything that is tried again."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import count
from typing import NamedTuple

_MAX_EXPONENT = 40  # beyond that a float may overflow, and every maximum is reached long before


class BackoffKind(StrEnum):
    fixed = "fixed"
    linear = "linear"
    exponential = "exponential"


class Backoff(NamedTuple):
    """`first` after the first attempt, `factor` times as long after each further one, at most `longest`. In
    the unit of `first`.

    `jitter`: the random part of a pause, so that many clients that failed together do not retry together.
    `spread`: the same around the pause: 0.5 makes it between 0.5 and 1.5 times its length.
    """

    first: float
    longest: float | None
    factor: float = 2.0
    jitter: float = 0.0
    spread: float = 0.0
    kind: BackoffKind = BackoffKind.exponential

    def full_pause(self, attempt: int) -> float:
        """The pause after that attempt, counted from 1, without jitter."""
        if self.kind is BackoffKind.fixed:
            pause = self.first
        elif self.kind is BackoffKind.linear:
            pause = self.first * attempt
        else:
            pause = self.first * self.factor ** min(attempt - 1, _MAX_EXPONENT)
        return pause if self.longest is None else min(pause, self.longest)

    def with_jitter(self, pause: float, chance: float) -> float:
        """`chance`: from 0 to 1, random or from a hash."""
        return pause * (1.0 - self.jitter * chance) * (1.0 + self.spread * (2.0 * chance - 1.0))

    def pause(self, attempt: int, chance: float = 0.0) -> float:
        return self.with_jitter(self.full_pause(attempt), chance)

    def pauses(self) -> Iterator[float]:
        """The pauses after each attempt, without jitter."""
        return map(self.full_pause, count(1))
