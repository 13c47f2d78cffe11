"""A picture too wide for boxes: one line a node, from the top down, with what follows it."""

from __future__ import annotations

from holdfast.drawing.canvas import TextSpan
from holdfast.drawing.labels import ASCII_SHAPES, ASCII_SIGNS, MARK_SIGNS, SHAPE_SIGNS, SIGNS, shortened
from holdfast.drawing.layers import make_rows
from holdfast.drawing.picture import EdgeStyle, NodeShape, Picture, PictureEdge, PictureNode


def outline(picture: Picture, *, width: int, ascii_only: bool, depth: int = 0) -> list[list[TextSpan]]:
    """Nodes in the order of the layout; `->` says what each leads to, and when."""
    rows = make_rows(picture)
    following: dict[str, list[PictureEdge]] = {}
    names = {node.id: node for node in picture.nodes}
    for edge in picture.edges:
        following.setdefault(edge.source, []).append(edge)
    lines: list[list[TextSpan]] = []
    for row in rows.rows:
        for slot in row:
            node = rows.slots[slot].node
            if node is None or node.shape in (NodeShape.start, NodeShape.end):
                continue
            lines.append(_line(node, following.get(node.id, []), names, width, depth, ascii_only))
            if node.inside is not None:
                lines += outline(node.inside, width=width, ascii_only=ascii_only, depth=depth + 1)
    return lines


def _line(
    node: PictureNode,
    edges: list[PictureEdge],
    names: dict[str, PictureNode],
    width: int,
    depth: int,
    ascii_only: bool,
) -> list[TextSpan]:
    signs, shapes = (ASCII_SIGNS, ASCII_SHAPES) if ascii_only else (SIGNS, SHAPE_SIGNS)
    sign = MARK_SIGNS.get(node.mark) or signs.get(node.state, " ")
    style = node.mark if node.mark in MARK_SIGNS else str(node.state)
    head = f"{'  ' * depth}{sign} {node.label}{' ' + shapes[node.shape] if node.shape in shapes else ''}"
    tail = ""
    if node.note:
        tail += f"  {node.note}"
    if edges:
        arrow = "->" if ascii_only else "→"
        tail += f"  {arrow} " + ", ".join(_edge_text(edge, names) for edge in edges)
    head = _cut(head, width, ascii_only)
    return [TextSpan(head, style), TextSpan(_cut(tail, max(width - len(head), 0), ascii_only), "note")]


def _cut(text: str, width: int, ascii_only: bool) -> str:
    lead = text[: len(text) - len(text.lstrip())]
    kept = lead + shortened(text, width - len(lead)) if width > len(lead) + 1 else ""
    return kept.encode("ascii", "replace").decode() if ascii_only else kept


def _edge_text(edge: PictureEdge, names: dict[str, PictureNode]) -> str:
    label = names[edge.target].label or str(names[edge.target].shape)
    why = edge.label or ("on failure" if edge.look is EdgeStyle.failure else "")
    back = " (back)" if edge.look is EdgeStyle.loop else ""
    return f"{label}{back}{f' [{why}]' if why else ''}"
