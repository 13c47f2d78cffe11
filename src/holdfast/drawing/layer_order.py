"""The order within the rows, with few crossings: sweeps down and up by barycentre; the best one is kept."""

from __future__ import annotations

from bisect import bisect_right, insort
from itertools import pairwise

from holdfast.drawing.layers import Rows

SMALL = 400
"""Number of slots up to which neighbours are also swapped one by one (quadratic cost)."""

MOST_PAIRS = 50_000
"""Pairs of edges up to which that is done: two nodes side by side may have thousands of edges each."""

Links = list[list[int]]


def order(rows: Rows) -> tuple[Links, Links]:
    """Orders `rows.rows` in place; returns each slot's neighbours in the row above and in the row below."""
    above, below, beside = _links(rows)
    small = len(rows.slots) <= SMALL
    swaps = small and _pairs(rows.rows, above) + _pairs(rows.rows, below) <= MOST_PAIRS
    sweeps = 16 if small else 6
    # The best order so far is kept, because a sweep may also make it worse.
    best, fewest = [list(row) for row in rows.rows], _crossings(rows.rows, below)
    for sweep in range(sweeps):
        if not fewest:
            break
        _sweep(rows.rows, below if sweep % 2 else above, beside[sweep % 2], up=bool(sweep % 2))
        if swaps:
            _exchange(rows.rows, above, below)
        crossings = _crossings(rows.rows, below)
        if crossings < fewest:
            best, fewest = [list(row) for row in rows.rows], crossings
    rows.rows = best
    return above, below


def unlinked(rows: Rows) -> tuple[Links, Links]:
    """For rows that stay in their order: each is centred by itself."""
    return [[] for _ in rows.slots], [[] for _ in rows.slots]


def _pairs(rows: list[list[int]], links: Links) -> int:
    """At most so many pairs of edges are compared while neighbours are swapped, whatever their order."""
    return sum(len(links[slot]) ** 2 for row in rows if len(row) > 1 for slot in row)


def _links(rows: Rows) -> tuple[Links, Links, tuple[dict[int, int], dict[int, int]]]:
    """`beside`: the slot of a loop's turn should be next to the node at that end of the loop."""
    above: Links = [[] for _ in rows.slots]
    below: Links = [[] for _ in rows.slots]
    at_top: dict[int, int] = {}
    at_bottom: dict[int, int] = {}
    for route in rows.routes:
        chain = route.slots
        if route.back:
            at_bottom[chain[1]], at_top[chain[-2]] = chain[0], chain[-1]
            chain = chain[-2:0:-1]
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    return above, below, (at_top, at_bottom)


def _sweep(rows: list[list[int]], links: Links, beside: dict[int, int], *, up: bool) -> None:
    place: dict[int, int] = {}
    for row in reversed(rows) if up else rows:
        wish = {slot: _preferred_position(links[slot], place) for slot in row}
        for slot in row:
            if slot in beside and beside[slot] in wish:
                near = wish[beside[slot]]
                # Just after the node: ties would be broken by the order of the row.
                wish[slot] = None if near is None else near + 1e-6
        _sort(row, wish)
        place = {slot: i for i, slot in enumerate(row)}


def _preferred_position(links: list[int], place: dict[int, int]) -> float | None:
    found = [place[slot] for slot in links if slot in place]
    return sum(found) / len(found) if found else None


def _sort(row: list[int], wish: dict[int, float | None]) -> None:
    """Slots without neighbours keep their place; the others are sorted around them."""
    moving = sorted((slot for slot in row if wish[slot] is not None), key=lambda slot: wish[slot] or 0.0)
    following = iter(moving)
    row[:] = [slot if wish[slot] is None else next(following) for slot in row]


def _crossings(rows: list[list[int]], below: Links) -> int:
    total = 0
    for upper, lower in pairwise(rows):
        place = {slot: i for i, slot in enumerate(lower)}
        seen: list[int] = []
        for slot in upper:
            ends = sorted(place[target] for target in below[slot])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _exchange(rows: list[list[int]], above: Links, below: Links) -> None:
    """Swap neighbours if that saves a crossing, in a few passes."""
    for _ in range(4):
        better = False
        for r, row in enumerate(rows):
            place = {
                slot: i
                for near in (r - 1, r + 1)
                if 0 <= near < len(rows)
                for i, slot in enumerate(rows[near])
            }
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                if _gain(a, b, above, place) + _gain(a, b, below, place) > 0:
                    row[i], row[i + 1] = b, a
                    better = True
        if not better:
            return


def _gain(a: int, b: int, links: Links, place: dict[int, int]) -> int:
    """How many crossings would be saved if b were before a."""
    lefts, rights = [place[s] for s in links[a]], [place[s] for s in links[b]]
    return sum((left > right) - (left < right) for left in lefts for right in rights)
