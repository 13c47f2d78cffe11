"""Chooses boundaries if there are too many to try all.

Every kind of boundary gets its share, every place of a kind one of its own, and what is left goes to
repetitions: each tenth boundary of a run that repeats itself after ten would always be one and the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def spread(items: Sequence[T], most: int, *kinds: Callable[[T], Hashable]) -> list[T]:
    """At most so many of them, in their order: evenly over the first kind, then within it over the next."""
    if len(items) <= most:
        return list(items)
    chosen = set(_spread(items, range(len(items)), most, kinds))
    return [item for i, item in enumerate(items) if i in chosen]


def _spread(
    items: Sequence[T], among: Sequence[int], most: int, kinds: Sequence[Callable[[T], Hashable]]
) -> list[int]:
    if not kinds:
        return _evenly(among, most)
    groups: dict[Hashable, list[int]] = {}
    for i in among:
        groups.setdefault(kinds[0](items[i]), []).append(i)
    if len(groups) > most:
        return [group[0] for group in _evenly(list(groups.values()), most)]
    shares = _shares([len(group) for group in groups.values()], most)
    return [
        i
        for group, share in zip(groups.values(), shares, strict=True)
        for i in _spread(items, group, share, kinds[1:])
    ]


def _shares(sizes: Sequence[int], most: int) -> list[int]:
    """One each, and again one each, as long as there is something to share out."""
    shares = [0] * len(sizes)
    left = min(most, sum(sizes))
    while left:
        for i in range(len(sizes)):
            if left and shares[i] < sizes[i]:
                shares[i] += 1
                left -= 1
    return shares


def _evenly(items: Sequence[T], most: int) -> list[T]:
    """The first, the last, and the others at equal distances."""
    if most >= len(items):
        return list(items)
    return [items[i * (len(items) - 1) // max(most - 1, 1)] for i in range(most)]
