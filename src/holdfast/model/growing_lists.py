"""Lists that grow step by step: where their items are in the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.types.value import FrozenList

Run = tuple[int, int]
"""From this record to that one."""


class Segment:
    """A long list that grew step by step and is not loaded yet: its items are in the journal (D-27).

    `prefix`, then what the records of each run added, then `tail` (what was added since loading).
    """

    __slots__ = ("count", "load", "prefix", "runs", "tail")

    def __init__(
        self, prefix: list[Any], runs: list[Run], count: int, load: Callable[[Segment], list[Any]]
    ) -> None:
        self.prefix, self.runs, self.count = prefix, runs, count
        self.tail: list[Any] = []
        self.load = load

    def whole(self) -> FrozenList:
        return FrozenList([*self.prefix, *self.load(self), *self.tail])

    def grow(self, operand: Any) -> None:
        self.tail.extend(operand if isinstance(operand, (list, tuple)) else (operand,))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.count + len(self.tail)


class Growth(msgspec.Struct, array_like=True):
    """Where the items of a growing list of the root frame are: its first value, and the records that added
    to it.

    Within a range every step of the scope was in the root frame. A fork ends the range: what a branch adds is
    part of the list only if the branch is merged, and then in canonical order.
    """

    prefix: list[Any]
    runs: list[Run]
    # The tree's `next_id` when the last range grew: a different value means that there was a fork since.
    at: int = -1

    def add(self, seq: int, at: int) -> None:
        if self.runs and at >= 0 and at == self.at:
            self.runs[-1] = (self.runs[-1][0], seq)
        else:
            self.runs.append((seq, seq))
        self.at = at
