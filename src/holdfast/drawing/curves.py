"""The curve of an edge: it bends only between rows and is vertical beside nodes, so it crosses none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.drawing.layers import EdgeRoute
from holdfast.drawing.layout import Layout

TURN = 26.0
"""The height of a loop's turn below its source and above its target."""


def ports_of(layout: Layout) -> list[tuple[float, float]]:
    """The x of each route at its source and at its target, spread in the order of the other ends."""
    leaves = _spread(layout, ((r.slots[0], r.slots[1], i) for i, r in enumerate(layout.routes)))
    enters = _spread(layout, ((r.slots[-1], r.slots[-2], i) for i, r in enumerate(layout.routes)))
    return [(leaves[i], enters[i]) for i in range(len(layout.routes))]


def _spread(layout: Layout, ends: Iterable[tuple[int, int, int]]) -> dict[int, float]:
    by_node: dict[int, list[tuple[float, int]]] = {}
    for node, towards, route in ends:
        by_node.setdefault(node, []).append((layout.slots[towards].x, route))
    xs: dict[int, float] = {}
    for node, found in by_node.items():
        slot = layout.slots[node]
        step = min(22.0, max(slot.width - 24, 0) / len(found))
        first = slot.x - step * (len(found) - 1) / 2
        xs |= {route: first + i * step for i, (_, route) in enumerate(sorted(found))}
    return xs


def path_of(
    layout: Layout, route: EdgeRoute, tops: list[float], heights: list[float], ports: tuple[float, float]
) -> str:
    slots = [layout.slots[i] for i in route.slots]
    # Only of the rows on its way: a tangled picture has thousands of both.
    bottoms = {row: tops[row] + heights[row] for slot in slots for row in (slot.layer, slot.layer - 1)}
    source, target = slots[0], slots[-1]
    begin = bottoms[source.layer] - (heights[source.layer] - source.height) / 2
    arrive = tops[target.layer] + (heights[target.layer] - target.height) / 2
    parts = [f"M{_p(ports[0], begin)}"]
    if begin < bottoms[source.layer]:
        parts.append(f"L{_p(ports[0], bottoms[source.layer])}")
    if route.back:
        parts += _up(route, layout, tops, bottoms, ports)
    else:
        parts += _down(route, layout, tops, bottoms, ports)
    parts.append(f"L{_p(ports[1], arrive)}")
    return "".join(parts)


def _down(
    route: EdgeRoute,
    layout: Layout,
    tops: list[float],
    bottoms: Mapping[int, float],
    ports: tuple[float, float],
) -> list[str]:
    x, parts = ports[0], list[str]()
    for number in route.slots[1:]:
        slot = layout.slots[number]
        to = ports[1] if number == route.slots[-1] else slot.x
        y, below = bottoms[slot.layer - 1], tops[slot.layer]
        # The last part is vertical, so that the arrowhead points straight down.
        end = below - 8 if number == route.slots[-1] else below
        parts.append(_curve(x, y, to, end))
        if number != route.slots[-1]:
            parts.append(f"L{_p(to, bottoms[slot.layer])}")
        x = to
    return parts


def _up(
    route: EdgeRoute,
    layout: Layout,
    tops: list[float],
    bottoms: Mapping[int, float],
    ports: tuple[float, float],
) -> list[str]:
    lanes = [layout.slots[number] for number in route.slots[1:-1]]
    first, last = lanes[0], lanes[-1]
    low, high = bottoms[first.layer], tops[last.layer]
    parts = [f"C{_p(ports[0], low + TURN)} {_p(first.x, low + TURN)} {_p(first.x, low)}"]
    for lane, following in zip(lanes, [*lanes[1:], None], strict=True):
        parts.append(f"L{_p(lane.x, tops[lane.layer])}")
        if following is not None:
            parts.append(_curve(lane.x, tops[lane.layer], following.x, bottoms[following.layer]))
    over = f"C{_p(last.x, high - TURN)} {_p(ports[1], high - TURN)} {_p(ports[1], high - 8)}"
    return [*parts, over]


def _curve(x: float, y: float, to: float, end: float) -> str:
    middle = (y + end) / 2
    return f"C{_p(x, middle)} {_p(to, middle)} {_p(to, end)}" if x != to else f"L{_p(to, end)}"


def end_of(path: str) -> tuple[float, float]:
    x, y = path.rpartition("L")[2].split()
    return float(x), float(y)


def _p(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"
