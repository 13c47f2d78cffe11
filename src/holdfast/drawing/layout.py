"""The layout: rows from the top down, few crossings, straight long edges, loops at the side."""

from __future__ import annotations

from math import floor
from typing import Protocol

import msgspec

from holdfast.drawing.coordinates import place
from holdfast.drawing.layer_order import order, unlinked
from holdfast.drawing.layers import EdgeRoute, Rows, Slot, count_slots, make_rows
from holdfast.drawing.picture import Picture, PictureEdge, PictureNode

Size = tuple[float, float]


class Ruler(Protocol):
    """Sizes and distances of one kind of drawing: in pixels or in characters."""

    gap: float
    """Between two nodes of a row."""

    lane: float
    """Between a passing edge and its neighbours."""

    def node(self, node: PictureNode, inside: Layout | None) -> Size: ...

    def label(self, edge: PictureEdge) -> Size: ...


class Layout(msgspec.Struct):
    """Every slot has its centre `x`; the left edge of the drawing is 0. Renderers set the heights of rows."""

    picture: Picture
    slots: list[Slot]
    rows: list[list[int]]
    routes: list[EdgeRoute]
    width: float
    insides: dict[str, Layout]

    def row_height(self, row: int) -> float:
        return max(self.slots[slot].height for slot in self.rows[row])

    @property
    def heights(self) -> list[float]:
        return [self.row_height(row) for row in range(len(self.rows))]


MOST_SLOTS = 10_000
"""Of a picture whose edges are kept apart. A flow of a thousand nodes has about two thousand; five hundred
nodes with two thousand edges between any two of them would have 250,000."""


def is_tangled(picture: Picture) -> bool:
    """Whether it has too many long edges for a layout with few crossings."""
    return count_slots(picture) > MOST_SLOTS


def lay_out(picture: Picture, ruler: Ruler) -> Layout:
    """Deterministic: the same picture and ruler always give the same layout. The work is bounded by nodes and
    edges: a tangled picture has the same rows in the order of its nodes, and edges may run over nodes."""
    return _lay_out(picture, ruler, short=is_tangled(picture))


def _lay_out(picture: Picture, ruler: Ruler, *, short: bool) -> Layout:
    insides = {
        node.id: _lay_out(node.inside, ruler, short=short)
        for node in picture.nodes
        if node.inside is not None
    }
    rows = make_rows(picture, short=short)
    for slot in rows.slots:
        slot.width, slot.height = _size(slot, ruler, insides)
    above, below = unlinked(rows) if short else order(rows)
    # Whole numbers: slots exactly above each other stay so, and a terminal has no half columns.
    xs = [floor(x) for x in place(rows, above, below, lambda a, b: _apart(rows, ruler, a, b))]
    left = min((x - slot.width / 2 for x, slot in zip(xs, rows.slots, strict=True)), default=0)
    for x, slot in zip(xs, rows.slots, strict=True):
        slot.x = x - left
    width = max((slot.x + slot.width / 2 for slot in rows.slots), default=0)
    return Layout(picture, rows.slots, rows.rows, rows.routes, width, insides)


def _size(slot: Slot, ruler: Ruler, insides: dict[str, Layout]) -> Size:
    if slot.node is not None:
        return ruler.node(slot.node, insides.get(slot.node.id))
    return ruler.label(slot.edge) if slot.label and slot.edge is not None else (1, 1)


def _apart(rows: Rows, ruler: Ruler, a: int, b: int) -> float:
    """From centre to centre."""
    left, right = rows.slots[a], rows.slots[b]
    passing = left.node is None or right.node is None
    return (left.width + right.width) / 2 + (ruler.lane if passing else ruler.gap)
