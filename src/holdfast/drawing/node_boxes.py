"""Where each node of a picture stands, for canvases that draw the nodes themselves."""

from __future__ import annotations

import msgspec

from holdfast.drawing.layout import Layout, Size, lay_out
from holdfast.drawing.picture import NodeShape, Picture, PictureEdge, PictureNode
from holdfast.drawing.state_signs import columns, shortened
from holdfast.drawing.svg import EDGE_LABEL_AT_MOST, height_of, tops_of

WIDTH = 208.0
HEIGHT = 64.0
HEAD = 56.0
"""Above the nodes inside of another one."""
PADDING = 24.0
ROOM = 24.0
"""More room between rows than in a picture: ports and their names are there."""
_DOTS = (NodeShape.start, NodeShape.end)


class NodeBox(msgspec.Struct, frozen=True, kw_only=True):
    """`x`, `y`: its upper left corner, from that of the node around it."""

    x: float
    y: float
    width: float
    height: float


class CanvasRuler:
    """In pixels, for nodes of one size."""

    gap = 48.0
    lane = 28.0

    def node(self, node: PictureNode, inside: Layout | None) -> Size:
        if node.shape in _DOTS:
            return 16, 16
        if inside is not None:
            return max(inside.width + 2 * PADDING, WIDTH), _height(inside) + HEAD + PADDING
        return WIDTH, HEIGHT

    def label(self, edge: PictureEdge) -> Size:
        return 6.5 * columns(shortened(edge.label, EDGE_LABEL_AT_MOST)) + 16, 20


def positions_of(picture: Picture) -> dict[str, NodeBox]:
    """By id; a node inside of another one has its name in front: `each/pay`."""
    return _boxes(lay_out(picture, CanvasRuler()), "")


def _boxes(layout: Layout, path: str) -> dict[str, NodeBox]:
    found: dict[str, NodeBox] = {}
    tops, heights = tops_of(layout), layout.heights
    for slot in layout.slots:
        if slot.node is None:
            continue
        top = tops[slot.layer] + ROOM * slot.layer + (heights[slot.layer] - slot.height) / 2
        x, y = slot.x - slot.width / 2, top
        if path:
            x, y = x + PADDING, y + HEAD
        found[path + slot.node.id] = NodeBox(
            x=round(x), y=round(y), width=round(slot.width), height=round(slot.height)
        )
        inside = layout.insides.get(slot.node.id)
        if inside is not None:
            found |= _boxes(inside, f"{path}{slot.node.id}/")
    return found


def _height(layout: Layout) -> float:
    return height_of(layout) + ROOM * max(len(layout.rows) - 1, 0)
