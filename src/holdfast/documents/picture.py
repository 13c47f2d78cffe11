"""A document as a picture: its nodes with those inside of them, whether it could run or not."""

from __future__ import annotations

from msgspec.structs import replace

from holdfast.documents.compare import DocumentDiff
from holdfast.drawing.node_boxes import NodeBox, positions_of
from holdfast.drawing.picture import EdgeStyle, Highlight, Picture, PictureEdge, PictureNode
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
    label = edge.label or edge.when or ("otherwise" if edge.otherwise else port)
    return PictureEdge(source=edge.source, target=edge.target, label=label, look=look, id=edge.name)


def diff_picture(before: FlowDocument, after: FlowDocument, diff: DocumentDiff) -> Picture:
    """Both documents in one picture, with what was added, removed and changed."""
    nodes = {each.id: Highlight(each.change) for each in diff.nodes}
    edges = {each.id: Highlight(each.change) for each in diff.edges}
    return _merged(document_picture(after), document_picture(before), nodes, edges)


def _merged(
    after: Picture, before: Picture | None, nodes: dict[str, Highlight], edges: dict[str, Highlight]
) -> Picture:
    old = {node.id: node for node in before.nodes} if before is not None else {}
    shown = [
        replace(
            node,
            mark=nodes.get(node.id, Highlight.none),
            inside=node.inside
            and _merged(node.inside, old[node.id].inside if node.id in old else None, nodes, edges),
        )
        for node in after.nodes
    ]
    shown += [
        replace(node, mark=Highlight.removed)
        for node in old.values()
        if nodes.get(node.id) is Highlight.removed
    ]
    known = {node.id for node in shown}
    lines = [replace(edge, mark=edges.get(edge.id, Highlight.none)) for edge in after.edges]
    lines += [
        replace(edge, mark=Highlight.removed)
        for edge in (before.edges if before is not None else ())
        if edges.get(edge.id) is Highlight.removed and {edge.source, edge.target} <= known
    ]
    return replace(after, nodes=tuple(shown), edges=tuple(lines))


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
