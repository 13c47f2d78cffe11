"""A picture with the place of each node and edge, in pixels, for a reader that draws it itself."""

from __future__ import annotations

import msgspec

from holdfast.drawing.curves import end_of, path_of, ports_of
from holdfast.drawing.layout import Layout, lay_out
from holdfast.drawing.picture import Picture, PictureNode, State
from holdfast.drawing.svg import FRAME_TOP, SvgRuler, height_of, tops_of


class PlacedNode(msgspec.Struct, frozen=True, kw_only=True):
    """`id`: its path, as `child/pay`. `x`, `y`: its left upper corner. `inside`: `open` if its inside is
    drawn within it, `closed` if it could be, else empty."""

    id: str
    label: str
    shape: str
    x: float
    y: float
    width: float
    height: float
    detail: str = ""
    inside: str = ""


class PlacedEdge(msgspec.Struct, frozen=True, kw_only=True):
    """`path`: its curve as in SVG, from `x`, `y`; `head_x`, `head_y`: the point of its arrow. `id`: empty for
    the edge from the start. `label_x`, `label_y`: the middle of the label."""

    id: str
    source: str
    target: str
    label: str
    look: str
    path: str
    x: float
    y: float
    head_x: float
    head_y: float
    label_x: float = 0
    label_y: float = 0


class PlacedPicture(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes around others come before those inside them."""

    width: float
    height: float
    nodes: list[PlacedNode]
    edges: list[PlacedEdge]


def placed(picture: Picture) -> PlacedPicture:
    """Each node has room for a state and a note, whatever its state is."""
    layout = lay_out(_with_room(picture), SvgRuler())
    nodes, edges = list[PlacedNode](), list[PlacedEdge]()
    _place(layout, "", 0, 0, nodes, edges)
    return PlacedPicture(width=layout.width, height=height_of(layout), nodes=nodes, edges=edges)


def _with_room(picture: Picture) -> Picture:
    def room(node: PictureNode) -> PictureNode:
        inside = None if node.inside is None else _with_room(node.inside)
        return msgspec.structs.replace(node, state=State.done, note="12 of 24", inside=inside)

    return msgspec.structs.replace(picture, nodes=tuple(map(room, picture.nodes)))


def _place(
    layout: Layout, path: str, dx: float, dy: float, nodes: list[PlacedNode], edges: list[PlacedEdge]
) -> None:
    tops, ports = tops_of(layout), ports_of(layout)
    heights = layout.heights
    labels = {
        id(slot.edge): (dx + slot.x, dy + tops[slot.layer] + heights[slot.layer] / 2)
        for slot in layout.slots
        if slot.label
    }
    for number, route in enumerate(layout.routes):
        curve, edge = path_of(layout, route, tops, heights, ports[number]), route.edge
        x, y = end_of(curve)
        label_x, label_y = labels.get(id(edge), (0, 0))
        edges.append(
            PlacedEdge(
                id=path + edge.id if edge.id else "",
                source=path + edge.source,
                target=path + edge.target,
                label=edge.label,
                look=str(edge.look),
                path=curve,
                x=dx,
                y=dy,
                head_x=dx + x,
                head_y=dy + y,
                label_x=label_x,
                label_y=label_y,
            )
        )
    for slot in layout.slots:
        node = slot.node
        if node is None:
            continue
        left = dx + slot.x - slot.width / 2
        top = dy + tops[slot.layer] + (heights[slot.layer] - slot.height) / 2
        inside = layout.insides.get(node.id)
        nodes.append(
            PlacedNode(
                id=path + node.id,
                label=node.label,
                shape=str(node.shape),
                x=left,
                y=top,
                width=slot.width,
                height=slot.height,
                detail=node.detail,
                inside="open" if inside is not None else "closed" if node.closed else "",
            )
        )
        if inside is not None:
            aside = (slot.width - inside.width) / 2
            _place(inside, f"{path}{node.id}/", left + aside, top + FRAME_TOP, nodes, edges)
