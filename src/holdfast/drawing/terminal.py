"""A picture as lines of text: rounded boxes, arrows, signs; ASCII if the terminal has no more.

A picture too wide for boxes becomes an outline: one line per node, from the top down, with its targets.
"""

from __future__ import annotations

import msgspec

from holdfast.drawing.channels import Leg, Net, plan
from holdfast.drawing.character_grid import EAST, NORTH, SOUTH, UPRIGHT, WEST, Canvas, TextSpan
from holdfast.drawing.layers import Slot, make_rows
from holdfast.drawing.layout import Layout, Size, is_tangled, lay_out
from holdfast.drawing.picture import EdgeStyle, Highlight, NodeShape, Picture, PictureEdge, PictureNode, State
from holdfast.drawing.state_signs import (
    ASCII_SHAPES,
    ASCII_SIGNS,
    MARK_SIGNS,
    SHAPE_SIGNS,
    SHAPE_WORDS,
    SIGNS,
    WORDS,
    columns,
    shortened,
)


def outline(picture: Picture, *, width: int, ascii_only: bool, depth: int = 0) -> list[list[TextSpan]]:
    """Nodes in the order of the layout; `->` shows their targets and conditions."""
    rows = make_rows(picture, short=True)
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


LABEL_AT_MOST = 24
EDGE_LABEL_AT_MOST = 28
CLOSE_LABEL_AT_MOST = 14
_DOTS = {NodeShape.start: "●", NodeShape.end: "◉"}


class TextDrawing(msgspec.Struct, frozen=True):
    """Lines of spans. `plain` is the same as one string."""

    lines: list[list[TextSpan]]

    @property
    def plain(self) -> str:
        return "\n".join("".join(span.text for span in line).rstrip() for line in self.lines)


def to_text(
    picture: Picture, *, width: int = 100, height: int = 0, ascii_only: bool = False, legend: bool = True
) -> TextDrawing:
    """As wide as needed, up to `width` columns (and `height` lines, unless 0). A picture that does not fit is
    drawn closer and without notes; if that is not enough, it becomes an indented outline.
    `ascii_only`: for a terminal with an ASCII encoding."""
    canvas = None
    # A larger picture would not fit anyway, and the layout of it takes long.
    if len(picture.nodes) <= (height or 400) and len(picture.edges) <= 1000 and not is_tangled(picture):
        canvas = _fitting(picture, width, height, ascii_only=ascii_only)
    if canvas is None:
        lines = outline(picture, width=width, ascii_only=ascii_only)
    else:
        lines = canvas.lines(ascii_only=ascii_only)
    if legend:
        lines += _legend(picture, width, ascii_only=ascii_only)
    return TextDrawing(lines)


def _fitting(picture: Picture, width: int, height: int, *, ascii_only: bool) -> Canvas | None:
    for close in (False, True):
        ruler = TextRuler(ascii_only=ascii_only, close=close)
        layout = lay_out(picture, ruler)
        if layout.width > width + 2:  # a label has a margin
            continue  # lines between the rows only make it wider
        canvas = ruler.draw(layout)
        if canvas.width <= width and (not height or canvas.height <= height):
            return canvas
    return None


class TextRuler:
    """In characters. Widths are odd, so that each box has a middle column. `close`: minimal distances."""

    def __init__(self, *, ascii_only: bool, close: bool = False) -> None:
        self._ascii = ascii_only
        self._close = close
        self.gap, self.lane = (1.0, 1.0) if close else (3.0, 2.0)
        self._label = CLOSE_LABEL_AT_MOST if close else EDGE_LABEL_AT_MOST
        self._insides: dict[int, tuple[Layout, Canvas]] = {}

    def node(self, node: PictureNode, inside: Layout | None) -> Size:
        if node.shape in _DOTS:
            return 1, 1
        texts = self._texts(node)
        width, height = max(columns(text) for text, _ in texts) + 4, len(texts) + 2
        if inside is not None:
            canvas = self.draw(inside)
            self._insides[id(inside)] = (inside, canvas)
            width, height = max(width + 2, canvas.width + 4), canvas.height + 2
        return width | 1, height

    def label(self, edge: PictureEdge) -> Size:
        return (columns(shortened(edge.label, self._label)) + 2) | 1, 1

    def _texts(self, node: PictureNode) -> list[tuple[str, str]]:
        return node_lines(node, ascii_only=self._ascii, close=self._close)

    def draw(self, layout: Layout) -> Canvas:
        channels, canvas = plan(layout), Canvas()
        top = _channel(canvas, channels[0], 0, layout)
        for number, row in enumerate(layout.rows):
            height = int(layout.row_height(number))
            for slot in row:
                self._slot(canvas, layout, slot, top, height)
            top += height
            top += _channel(canvas, channels[number + 1], top, layout, last=number == len(layout.rows) - 1)
        return canvas

    def _slot(self, canvas: Canvas, layout: Layout, number: int, top: int, height: int) -> None:
        slot = layout.slots[number]
        if slot.node is None:
            self._passing(canvas, layout, number, top, height)
            return
        if slot.node.shape in _DOTS:
            canvas.write(top, int(slot.x), _DOTS[slot.node.shape], style_of(slot.node))
        else:
            self._box(canvas, slot, slot.node, top, layout.insides.get(slot.node.id))
        leaving = [edge_style(route.edge) for route in layout.routes if route.slots[0] == number]
        for row in range(top + int(slot.height), top + height):
            for style in leaving:
                canvas.line(row, int(slot.x), UPRIGHT, -1 - number, style)

    def _passing(self, canvas: Canvas, layout: Layout, number: int, top: int, height: int) -> None:
        slot = layout.slots[number]
        assert slot.edge is not None
        style = edge_style(slot.edge)
        for row in range(top, top + height):
            canvas.line(row, int(slot.x), UPRIGHT, -1 - number, style)
        if slot.label:
            text = shortened(slot.edge.label, self._label)
            canvas.write(top + height // 2, int(slot.x) - columns(text) // 2, text, "label")

    def _box(self, canvas: Canvas, slot: Slot, node: PictureNode, top: int, inside: Layout | None) -> None:
        left, style = int(slot.x - slot.width / 2), style_of(node)
        canvas.box(top, left, int(slot.width), int(slot.height), style)
        texts = self._texts(node)
        if inside is not None:
            canvas.write(top, left + 2, f" {texts[0][0]} ", style)
            drawn = self._insides[id(inside)][1]
            canvas.paste(drawn, top + 1, left + (int(slot.width) - drawn.width) // 2)
            return
        for row, (text, kind) in enumerate(texts, top + 1):
            canvas.write(row, left + (int(slot.width) - columns(text)) // 2, text, kind or style)


def _channel(canvas: Canvas, nets: list[Net], top: int, layout: Layout, *, last: bool = False) -> int:
    """Draws the lines between two rows; returns how many rows that took."""
    if not nets:
        return 0
    tracks = 1 + max(net.track for net in nets)
    bottom = top + tracks + (0 if last else 1)
    for number, net in enumerate(nets):
        _net(canvas, net, number, top, bottom, layout)
    return bottom - top


def _net(canvas: Canvas, net: Net, owner: int, top: int, bottom: int, layout: Layout) -> None:
    turn = top + max(net.track, 0)
    for leg in net.tops:
        _upright(canvas, leg, top, turn if not net.straight else bottom - 1, owner, layout, up=True)
    for leg in net.bottoms:
        _upright(canvas, leg, turn if not net.straight else top, bottom - 1, owner, layout, up=False)
    if not net.straight:
        _level(canvas, net, turn, owner, layout)
        _loop_head(canvas, net, turn, layout)
    for leg in net.bottoms:
        if leg.arrives:
            canvas.write(bottom - 1, leg.col, "▼", edge_style(layout.routes[leg.route].edge))


def _loop_head(canvas: Canvas, net: Net, row: int, layout: Layout) -> None:
    """A loop comes from below and turns above its target: beside the line that it joins, an arrowhead shows
    that it does not begin there."""
    ends = [leg for leg in net.bottoms if leg.arrives]
    if net.tops or not ends:
        return
    end, side = ends[0], next(leg for leg in net.bottoms if not leg.arrives)
    step, sign = (1, "◀") if side.col > end.col else (-1, "▶")
    if abs(side.col - end.col) > 1:
        canvas.write(row, end.col + step, sign, edge_style(layout.routes[side.route].edge))


def _upright(
    canvas: Canvas, leg: Leg, first: int, last: int, owner: int, layout: Layout, *, up: bool
) -> None:
    style = edge_style(layout.routes[leg.route].edge)
    for row in range(first, last + 1):
        lines = UPRIGHT
        if not up and row == first:
            lines = SOUTH
        elif up and row == last:
            lines = NORTH
        canvas.line(row, leg.col, lines, owner, style)


def _level(canvas: Canvas, net: Net, row: int, owner: int, layout: Layout) -> None:
    """Each leg's part of the track is drawn in its style, from where the net enters."""
    start = net.tops[0].col if net.tops else net.bottoms[0].col
    for leg in (*net.tops, *net.bottoms):
        low, high = min(start, leg.col), max(start, leg.col)
        style = edge_style(layout.routes[leg.route].edge)
        for col in range(low, high + 1):
            lines = (EAST if col < high else 0) | (WEST if col > low else 0)
            if lines:
                canvas.line(row, col, lines, owner, style)


def node_lines(node: PictureNode, *, ascii_only: bool, close: bool = False) -> list[tuple[str, str]]:
    """The content of a box: (text, style); no style: that of the box."""
    signs, shapes = (ASCII_SIGNS, ASCII_SHAPES) if ascii_only else (SIGNS, SHAPE_SIGNS)
    before = [signs[node.state]] if node.state in signs else []
    before += [MARK_SIGNS[node.mark]] if node.mark in MARK_SIGNS else []
    after = [shapes[node.shape]] if node.shape in shapes else []
    limit = CLOSE_LABEL_AT_MOST if close else LABEL_AT_MOST
    first = " ".join([*before, shortened(node.label, limit), *after])
    return [(first, ""), *([(shortened(node.note, limit), "note")] if node.note and not close else [])]


def style_of(node: PictureNode) -> str:
    return node.mark if node.mark in MARK_SIGNS else str(node.state) or "node"


def edge_style(edge: PictureEdge) -> str:
    if edge.mark is not Highlight.none:
        return str(edge.mark)
    return str(edge.look) if edge.look in (EdgeStyle.dead, EdgeStyle.failure) else "line"


def _legend(picture: Picture, width: int, *, ascii_only: bool) -> list[list[TextSpan]]:
    """Only the signs that occur."""
    states, shapes = _occurring(picture)
    signs, kinds = (ASCII_SIGNS, ASCII_SHAPES) if ascii_only else (SIGNS, SHAPE_SIGNS)
    result = [(f"{signs[s]} {WORDS[s]}", str(s)) for s in State if s in states and s in signs]
    result += [(f"{kinds[s]} {SHAPE_WORDS[s]}", "note") for s in NodeShape if s in shapes and s in kinds]
    lines: list[list[TextSpan]] = [[]] if result else []
    used = 0
    for text, style in result:
        if used and used + columns(text) + 3 > width:
            lines.append([])
            used = 0
        lines[-1] += [TextSpan("   " if used else ""), TextSpan(text, style)]
        used += columns(text) + 3
    return [[], *lines] if result else []


def _occurring(picture: Picture) -> tuple[set[State], set[NodeShape]]:
    states, shapes = {node.state for node in picture.nodes}, {node.shape for node in picture.nodes}
    for node in picture.nodes:
        if node.inside is not None:
            more = _occurring(node.inside)
            states, shapes = states | more[0], shapes | more[1]
    return states, shapes
