"""A document as a picture: its nodes with those inside of them, whether it could run or not."""

from __future__ import annotations

from holdfast.drawing.node_boxes import NodeBox, positions_of
from holdfast.drawing.picture import EdgeStyle, Picture, PictureEdge, PictureNode
from holdfast.frontends.document.document import FlowDocument, FlowEdge, FlowNode
from holdfast.frontends.document.limits import MAX_NESTED
from holdfast.frontends.document.node_type import ERROR, OUT


def arrange_document(document: FlowDocument) -> dict[str, NodeBox]:
    """Where its nodes stand, by id, as if it had no positions."""
    return {path.rpartition("/")[2]: box for path, box in positions_of(document_picture(document)).items()}


def document_picture(document: FlowDocument) -> Picture:
    nodes = {node.id: node for node in document.nodes}
    inside: dict[str | None, list[FlowNode]] = {}
    for node in nodes.values():
        inside.setdefault(_parent(node, nodes), []).append(node)
    around = {node.id: parent for parent, members in inside.items() for node in members}
    edges: dict[str | None, list[PictureEdge]] = {}
    for edge in document.edges:
        if edge.source in around and edge.target in around and around[edge.source] == around[edge.target]:
            edges.setdefault(around[edge.source], []).append(_edge(edge))
    return _picture(document.name, inside, edges, None)


def _picture(
    title: str,
    inside: dict[str | None, list[FlowNode]],
    edges: dict[str | None, list[PictureEdge]],
    parent: str | None,
) -> Picture:
    shown = [
        PictureNode(
            id=node.id,
            label=node.label or node.id,
            inside=_picture(title, inside, edges, node.id) if node.id in inside else None,
        )
        for node in inside.get(parent, [])
    ]
    return Picture(nodes=tuple(shown), edges=tuple(edges.get(parent, ())), title=title)


def _edge(edge: FlowEdge) -> PictureEdge:
    port = "" if edge.port == OUT else edge.port
    look = EdgeStyle.failure if edge.port == ERROR else EdgeStyle.plain
    return PictureEdge(
        source=edge.source, target=edge.target, label=edge.label or edge.when or port, look=look
    )


def _parent(node: FlowNode, nodes: dict[str, FlowNode]) -> str | None:
    """None for a node whose parents lead back to it, do not exist or are too many: it must still be drawn."""
    seen = {node.id}
    at = node.parent
    while at is not None:
        if at in seen or at not in nodes or len(seen) > MAX_NESTED:
            return None
        seen.add(at)
        at = nodes[at].parent
    return node.parent
