"""The row of each node: edges lead down, loops up, a long edge has a slot in each row that it passes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast.drawing.picture import EdgeStyle, Picture, PictureEdge, PictureNode


class Slot(msgspec.Struct):
    """A place in a row: of a node, a label, or a passing edge."""

    layer: int
    node: PictureNode | None = None
    edge: PictureEdge | None = None
    label: bool = False
    x: float = 0
    width: float = 0
    height: float = 0


class EdgeRoute(msgspec.Struct):
    """An edge with the slots on its way, source first. `back`: from its source it goes down and around, up
    through `slots`, and into its target from above, like every other edge."""

    edge: PictureEdge
    slots: list[int]
    back: bool = False


class Rows(msgspec.Struct):
    """Slots by row, left to right, and the routes through them."""

    slots: list[Slot]
    rows: list[list[int]]
    routes: list[EdgeRoute]


def make_rows(picture: Picture, *, short: bool = False) -> Rows:
    """`short`: an edge has no slots in the rows that it only passes, so that there are at most two for each
    edge, however many rows there are."""
    ends, layer = _placed(picture)
    slots = [Slot(layer[i], node) for i, node in enumerate(picture.nodes)]
    routes = [_route(slots, edge, *ends[e], short=short) for e, edge in enumerate(picture.edges)]
    rows: list[list[int]] = [[] for _ in range(max((slot.layer for slot in slots), default=-1) + 1)]
    for i, slot in enumerate(slots):
        rows[slot.layer].append(i)
    return Rows(slots, rows, routes)


def count_slots(picture: Picture) -> int:
    """Of the picture and of those inside its nodes, without making them."""
    ends, layer = _placed(picture)
    passed = sum(len(_passed(layer[source], layer[target])) for source, target in ends)
    inside = sum(count_slots(node.inside) for node in picture.nodes if node.inside is not None)
    return len(picture.nodes) + passed + inside


def _placed(picture: Picture) -> tuple[list[tuple[int, int]], list[int]]:
    """The nodes of each edge, and the row of each node."""
    index = {node.id: i for i, node in enumerate(picture.nodes)}
    ends = [(index[edge.source], index[edge.target]) for edge in picture.edges]
    back = _back_edges(picture, ends)
    # A label has a row of its own, so that it never lies on a node or on another line.
    spans = [2 if edge.label else 1 for edge in picture.edges]
    return ends, _layers(len(picture.nodes), ends, back, spans)


def _passed(first: int, last: int) -> range:
    return range(first, last - 1, -1) if last <= first else range(first + 1, last)


def _route(slots: list[Slot], edge: PictureEdge, source: int, target: int, *, short: bool) -> EdgeRoute:
    first, last = slots[source].layer, slots[target].layer
    back = last <= first
    passed: Sequence[int] = _passed(first, last)
    if short:
        # A loop turns at both ends; another edge only needs the row of its label.
        passed = sorted({first, last}, reverse=True) if back else passed[: 1 if edge.label else 0]
    through: list[int] = []
    for layer in passed:
        through.append(len(slots))
        slots.append(Slot(layer, edge=edge, label=bool(edge.label) and len(through) == 1))
    return EdgeRoute(edge, [source, *through, target], back)


def _back_edges(picture: Picture, ends: list[tuple[int, int]]) -> set[int]:
    """Declared loops, edges from a node to itself, and other edges that close a cycle."""
    back = {
        e for e, edge in enumerate(picture.edges) if edge.look is EdgeStyle.loop or edge.source == edge.target
    }
    out: list[list[int]] = [[] for _ in picture.nodes]
    for e, (source, _) in enumerate(ends):
        if e not in back:
            out[source].append(e)
    seen = [0] * len(picture.nodes)
    for start in _starts(len(picture.nodes), ends, back):
        if not seen[start]:
            back |= _closing(start, out, ends, seen)
    return back


def _starts(count: int, ends: list[tuple[int, int]], back: set[int]) -> list[int]:
    entered = {target for e, (_, target) in enumerate(ends) if e not in back}
    first = [node for node in range(count) if node not in entered]
    # All nodes after the natural starts: a part of the graph that is one cycle has no start.
    return [*first, *range(count)]


def _closing(start: int, out: list[list[int]], ends: list[tuple[int, int]], seen: list[int]) -> set[int]:
    """Edges to a node that is still on the walk's path (seen: 1 on the path, 2 done)."""
    found: set[int] = set()
    seen[start] = 1
    # A stack and not recursion: a chain of a thousand nodes would exceed Python's limit.
    stack = [(start, iter(out[start]))]
    while stack:
        node, edges = stack[-1]
        e = next(edges, None)
        if e is None:
            seen[node] = 2
            stack.pop()
            continue
        target = ends[e][1]
        if seen[target] == 1:
            found.add(e)
        elif not seen[target]:
            seen[target] = 1
            stack.append((target, iter(out[target])))
    return found


def _layers(count: int, ends: list[tuple[int, int]], back: set[int], spans: list[int]) -> list[int]:
    """As high as its sources allow; then nodes with more edges below than above move down."""
    out: list[list[int]] = [[] for _ in range(count)]
    into: list[list[int]] = [[] for _ in range(count)]
    for e, (source, target) in enumerate(ends):
        if e not in back:
            out[source].append(e)
            into[target].append(e)
    order = _topological(out, into, ends)
    layer = [0] * count
    for node in order:
        layer[node] = max((layer[ends[e][0]] + spans[e] for e in into[node]), default=0)
    for node in reversed(order):
        # Only such nodes: moved down they shorten more edges than they lengthen.
        if len(out[node]) > len(into[node]):
            layer[node] = max(layer[node], min(layer[ends[e][1]] - spans[e] for e in out[node]))
    return _without_gaps(layer)


def _without_gaps(layer: list[int]) -> list[int]:
    lowest = min(layer, default=0)
    return [value - lowest for value in layer]


def _topological(out: list[list[int]], into: list[list[int]], ends: list[tuple[int, int]]) -> list[int]:
    missing = [len(edges) for edges in into]
    order = [node for node, count in enumerate(missing) if not count]
    for node in order:
        for e in out[node]:
            target = ends[e][1]
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    return order
