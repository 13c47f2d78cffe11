"""The x coordinate of each slot: the four alignments of Brandes and Köpf, and their median.

Long edges become straight, nodes are centred on their neighbours, and slots of a row keep their minimum
distance. Blocks are compacted by longest paths, which avoids the known error of the original.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from holdfast.drawing.layer_order import Links
from holdfast.drawing.layers import Rows

Separation = Callable[[int, int], float]


def place(rows: Rows, above: Links, below: Links, apart: Separation) -> list[float]:
    """The centre of each slot; the leftmost edge is not moved to 0."""
    conflicts = _conflicts(rows, above)
    layouts = [
        _aligned(rows.rows, above, below, conflicts, apart, up=up, right=right)
        for up in (False, True)
        for right in (False, True)
    ]
    _level(layouts)
    # The mean of the two middle ones: each alignment alone leans to one side.
    return [sum(sorted(xs)[1:3]) / 2 for xs in zip(*layouts, strict=True)]


def _aligned(
    rows: list[list[int]],
    above: Links,
    below: Links,
    conflicts: set[tuple[int, int]],
    apart: Separation,
    *,
    up: bool,
    right: bool,
) -> list[float]:
    walked = rows[::-1] if up else rows
    walked = [row[::-1] for row in walked] if right else walked
    root, align = _align(walked, below if up else above, conflicts)
    xs = _compact(walked, root, apart)
    found = [xs[root[slot]] for slot in range(len(align))]
    return [-x for x in found] if right else found


def _conflicts(rows: Rows, above: Links) -> set[tuple[int, int]]:
    """Links that cross a passing edge: the passing edge stays straight."""
    slots, found = rows.slots, set[tuple[int, int]]()
    for upper, lower in pairwise(rows.rows):
        place = {slot: i for i, slot in enumerate(upper)}
        left, scanned = -1, 0
        for i, slot in enumerate(lower):
            inner = next((u for u in above[slot] if slots[slot].node is None and slots[u].node is None), None)
            if inner is None and i < len(lower) - 1:
                continue
            limit = place[inner] if inner is not None else len(upper)
            for other in lower[scanned : i + 1]:
                for u in above[other]:
                    passing = slots[other].node is None and slots[u].node is None
                    if not passing and not left <= place[u] <= limit:
                        found.add((u, other))
            left, scanned = limit, i + 1
    return found


def _align(
    rows: list[list[int]], links: Links, conflicts: set[tuple[int, int]]
) -> tuple[list[int], list[int]]:
    """Each slot joins the block of its median neighbour, if that crosses no block made before."""
    count = len(links)
    root, align = list(range(count)), list(range(count))
    place: dict[int, int] = {}
    for row in rows:
        last = -1
        for slot in row:
            near = sorted((place[n], n) for n in links[slot] if n in place)
            for at, n in near[(len(near) - 1) // 2 : len(near) // 2 + 1]:
                crossing = (n, slot) in conflicts or (slot, n) in conflicts
                if align[slot] == slot and last < at and not crossing:
                    align[n] = slot
                    align[slot] = root[slot] = root[n]
                    last = at
        place = {slot: i for i, slot in enumerate(row)}
    return root, align


def _compact(rows: list[list[int]], root: list[int], apart: Separation) -> dict[int, float]:
    """Blocks as far left as possible; then those with room to their right as far right as possible."""
    after: dict[int, dict[int, float]] = {}
    before: dict[int, dict[int, float]] = {}
    for row in rows:
        for a, b in pairwise(row):
            gap = max(after.get(root[a], {}).get(root[b], 0), apart(a, b))
            after.setdefault(root[a], {})[root[b]] = before.setdefault(root[b], {})[root[a]] = gap
    order = _order({root[slot] for row in rows for slot in row}, after, before)
    xs: dict[int, float] = {}
    for block in order:
        xs[block] = max((xs[b] + gap for b, gap in before.get(block, {}).items()), default=0)
    for block in reversed(order):
        room = min((xs[b] - gap for b, gap in after.get(block, {}).items()), default=None)
        if room is not None:
            xs[block] = max(xs[block], room)
    return xs


def _order(
    blocks: set[int], after: dict[int, dict[int, float]], before: dict[int, dict[int, float]]
) -> list[int]:
    # Sorted, so that the picture is the same in every process.
    missing = {block: len(before.get(block, ())) for block in sorted(blocks)}
    order = [block for block, count in missing.items() if not count]
    for block in order:
        for following in after.get(block, ()):
            missing[following] -= 1
            if not missing[following]:
                order.append(following)
    return order


def _level(layouts: list[list[float]]) -> None:
    """Shift the four alignments onto the narrowest: left ones by their left edge, right ones by the right."""
    if not layouts[0]:
        return
    narrow = min(layouts, key=lambda xs: max(xs) - min(xs))
    low, high = min(narrow), max(narrow)
    for i, xs in enumerate(layouts):
        shift = high - max(xs) if i % 2 else low - min(xs)
        layouts[i] = [x + shift for x in xs]
