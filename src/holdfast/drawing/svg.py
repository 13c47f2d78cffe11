"""A picture as SVG: readable in light and dark, by colour, by sign and by word."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from holdfast.drawing.curves import end_of, path_of, ports_of
from holdfast.drawing.icons import icon, style_sheet
from holdfast.drawing.layers import EdgeRoute, Slot
from holdfast.drawing.layout import Layout, Size, lay_out
from holdfast.drawing.picture import EdgeStyle, NodeShape, Picture, PictureEdge, PictureNode, State
from holdfast.drawing.state_signs import MARK_SIGNS, SHAPE_WORDS, WORDS, columns, shortened
from holdfast.model.forms.visible_text import show_invisible

MARGIN = 16.0
LABEL_AT_MOST = 36
EDGE_LABEL_AT_MOST = 40
FRAME_TOP = 46.0
"""Where the inside of a node begins below its top."""
LEGEND_AT_LEAST = 520.0
"""The width of a row of the legend."""
_DOTS = (NodeShape.start, NodeShape.end)
_ENDS = (NodeShape.entry, NodeShape.exit)


def to_svg(picture: Picture, *, legend: bool = True) -> str:
    """A whole document, which can also be embedded in an HTML page unchanged. Every text is escaped."""
    picture = picture.without_secrets()
    ruler = SvgRuler()
    layout = lay_out(picture, ruler)
    below = _legend(picture, max(layout.width, LEGEND_AT_LEAST)) if legend else []
    width = max(layout.width, *(right for right, _, _ in below), 0) if below else layout.width
    height = height_of(layout)
    rows = max((y for _, y, _ in below), default=0.0)
    total = (width + 2 * MARGIN, height + 2 * MARGIN + (32 + rows if below else 0))
    text = "".join(part for _, _, part in below)
    lines = [
        _opening(picture, *total),
        f"<title>{escape(picture.title or 'graph')}</title>",
        f"<desc>{escape(_description(picture))}</desc>",
        style_sheet(),
        f'<g transform="translate({_n(MARGIN)} {_n(MARGIN)})">',
        *_layout_parts(layout),
        *([f'<g transform="translate(0 {_n(height + 24)})">{text}</g>'] if below else []),
        "</g>\n</svg>\n",
    ]
    return show_invisible("\n".join(lines))


def _opening(picture: Picture, width: float, height: float) -> str:
    size = f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}"'
    named = f'role="img" aria-label="{escape(_summary(picture))}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="holdfast" {named} {size}>'


class SvgRuler:
    """In pixels, for a common sans-serif font at 13."""

    gap = 28.0
    lane = 18.0

    def node(self, node: PictureNode, inside: Layout | None) -> Size:
        if node.shape in _DOTS:
            return 14, 14
        lines = [7.9 * columns(shortened(node.label, LABEL_AT_MOST)), 6.2 * columns(sub_line(node))]
        width = (
            max(lines)
            + 28
            + (20 if node.shape is not NodeShape.task else 0)
            + (22 if node.state or node.mark else 0)
        )
        if inside is not None:
            return max(width, inside.width + 32), height_of(inside) + 62
        return max(width, 72), 46 if sub_line(node) else 36

    def label(self, edge: PictureEdge) -> Size:
        return 6.3 * columns(shortened(edge.label, EDGE_LABEL_AT_MOST)) + 12, 18


def tops_of(layout: Layout) -> list[float]:
    """The top of each row. The distance between rows grows with the horizontal distance of their edges."""
    turns = [route for route in layout.routes if route.back]
    y = 30.0 if any(layout.slots[route.slots[-1]].layer == 0 for route in turns) else 0.0
    tops: list[float] = []
    for row, aside in enumerate(_asides(layout)):
        tops.append(y)
        y += layout.row_height(row) + 34 + min(aside / 8, 40)
    return tops


def _asides(layout: Layout) -> list[float]:
    """How far the edges below each row lead to the side."""
    found = [0.0] * len(layout.rows)
    for route in layout.routes:
        for a, b in pairwise(layout.slots[number] for number in route.slots):
            row = min(a.layer, b.layer)
            found[row] = max(found[row], abs(a.x - b.x))
    return found


def height_of(layout: Layout) -> float:
    if not layout.rows:
        return 0
    last = len(layout.rows) - 1
    turning = any(route.back and layout.slots[route.slots[0]].layer == last for route in layout.routes)
    return tops_of(layout)[-1] + layout.row_height(last) + (30 if turning else 0)


def _layout_parts(layout: Layout) -> list[str]:
    tops = tops_of(layout)
    heights = layout.heights
    ports = ports_of(layout)
    parts = [
        _edge(layout, route, path_of(layout, route, tops, heights, ports[i]))
        for i, route in enumerate(layout.routes)
    ]
    for slot in layout.slots:
        top = tops[slot.layer] + (heights[slot.layer] - slot.height) / 2
        if slot.node is not None:
            parts += _node(layout, slot, slot.node, top)
        elif slot.label and slot.edge is not None:
            parts.append(_label(slot, slot.edge, top))
    return parts


def _edge(layout: Layout, route: EdgeRoute, path: str) -> str:
    edge = route.edge
    kind = f"edge {edge.look} {edge.mark}".strip()
    source, target = _name(layout.slots[route.slots[0]]), _name(layout.slots[route.slots[-1]])
    text = f"{source} to {target}" + (f": {edge.label}" if edge.label else "")
    text += f" ({edge.mark})" if edge.mark else ""
    x, y = end_of(path)
    head = f'<path class="head" d="M{_n(x)} {_n(y)}l-4.5 -8h9z"/>'
    return f'<g class="{kind}"><title>{escape(text)}</title><path class="line" d="{path}"/>{head}</g>'


def _name(slot: Slot) -> str:
    return "" if slot.node is None else slot.node.label or str(slot.node.shape)


def _label(slot: Slot, edge: PictureEdge, top: float) -> str:
    text = escape(shortened(edge.label, EDGE_LABEL_AT_MOST))
    left = slot.x - slot.width / 2
    size = f'width="{_n(slot.width)}" height="{_n(slot.height)}"'
    ground = f'<rect class="ground" x="{_n(left)}" y="{_n(top)}" {size} rx="4"/>'
    words = f'<text class="label" x="{_n(slot.x)}" y="{_n(top + 13)}">{text}</text>'
    return f'<g class="{edge.look} {edge.mark}"><title>{escape(edge.label)}</title>{ground}{words}</g>'


def _node(layout: Layout, slot: Slot, node: PictureNode, top: float) -> list[str]:
    if node.shape in _DOTS:
        return [_dot(slot, node.shape, top + 7)]
    left = slot.x - slot.width / 2
    kind = " ".join(word for word in ("node", node.shape, node.state, node.mark) if word)
    inside = layout.insides.get(node.id)
    parts = [
        f'<g class="{kind}" transform="translate({_n(left)} {_n(top)})">',
        f"<title>{escape(_detail(node))}</title>",
    ]
    parts += _frames(node, slot)
    parts += _words(node, slot, framed=inside is not None)
    if inside is not None:
        aside = (slot.width - inside.width) / 2
        parts += [f'<g transform="translate({_n(aside)} {_n(FRAME_TOP)})">', *_layout_parts(inside), "</g>"]
    return [*parts, "</g>"]


def _dot(slot: Slot, shape: NodeShape, y: float) -> str:
    at = f'cx="{_n(slot.x)}" cy="{_n(y)}"'
    ring = f'<circle class="ring" {at} r="6.5"/><circle {at} r="3.5"/>'
    drawn = ring if shape is NodeShape.end else f'<circle {at} r="6"/>'
    return f'<g class="dot"><title>{shape}</title>{drawn}</g>'


def _frames(node: PictureNode, slot: Slot) -> list[str]:
    """A map is a stack of boxes, a sub-flow has a double border, the ends of a pipeline are round."""
    w, h = _n(slot.width), _n(slot.height)
    round_ = _n(slot.height / 2) if node.shape in _ENDS else "9"
    box = f'<rect class="box" width="{w}" height="{h}" rx="{round_}"/>'
    if node.shape is NodeShape.map:
        return [f'<rect class="box" x="5" y="5" width="{w}" height="{h}" rx="9"/>', box]
    if node.shape is NodeShape.subflow:
        within = f'x="3.5" y="3.5" width="{_n(slot.width - 7)}" height="{_n(slot.height - 7)}" rx="6"'
        return [box, f'<rect class="inner" {within}/>']
    return [box]


def _words(node: PictureNode, slot: Slot, *, framed: bool) -> list[str]:
    badge = node.state or node.mark in MARK_SIGNS
    left = 12.0 + (20 if node.shape is not NodeShape.task else 0)
    right = slot.width - (32 if badge else 12)
    middle = (left + right) / 2
    under = sub_line(node)
    first = 19.0 if under or framed else slot.height / 2 + 4.5
    name = escape(shortened(node.label, LABEL_AT_MOST))
    parts = [f'<text class="name" x="{_n(middle)}" y="{_n(first)}">{name}</text>']
    if under:
        parts.append(f'<text class="note" x="{_n(middle)}" y="{_n(first + 16)}">{escape(under)}</text>')
    row = 23.0 if framed or under else slot.height / 2
    if node.shape is not NodeShape.task:
        parts.append(f'<g class="shape" transform="translate(10 {_n(row - 8)})">{icon(node.shape)}</g>')
    if badge:
        sign = icon(node.mark if node.mark in MARK_SIGNS else node.state)
        parts.append(f'<g class="sign" transform="translate({_n(slot.width - 26)} {_n(row - 8)})">{sign}</g>')
    return parts


def sub_line(node: PictureNode) -> str:
    """The state as a word, and the note."""
    words = [str(node.mark) if node.mark in MARK_SIGNS else "", WORDS.get(node.state, ""), node.note]
    return shortened(" · ".join(word for word in words if word), LABEL_AT_MOST)


def _detail(node: PictureNode) -> str:
    parts = [node.label, str(node.mark), WORDS.get(node.state, ""), node.note, node.detail]
    return ". ".join(part for part in parts if part)


def _legend(picture: Picture, room: float) -> list[tuple[float, float, str]]:
    """(right edge, row's top, drawing) of each sign that occurs, in as many rows as needed."""
    states = [s for s in State if s and any(node.state is s for node in picture.nodes)]
    shapes = [s for s in SHAPE_WORDS if any(node.shape is s for node in picture.nodes)]
    marks = [m for m in MARK_SIGNS if any(node.mark is m for node in picture.nodes)]
    x, y, parts = 0.0, 0.0, list[tuple[float, float, str]]()
    for sign, word in [
        *((s, WORDS[s]) for s in states),
        *((s, SHAPE_WORDS[s]) for s in shapes),
        *((m, m) for m in marks),
    ]:
        kind = "shape" if isinstance(sign, NodeShape) else "sign"
        width = 22 + 6.2 * len(word)
        if x and x + width > room:
            x, y = 0.0, y + 24
        drawn = f'<g class="{kind}" transform="translate({_n(x)} {_n(y - 8)})">{icon(sign)}</g>'
        text = f'<text x="{_n(x + 21)}" y="{_n(y + 4)}">{word}</text>'
        parts.append((x + width, y, f'<g class="legend {sign}">{drawn}{text}</g>'))
        x += width + 16
    return parts


def _summary(picture: Picture) -> str:
    nodes = sum(node.shape not in _DOTS for node in picture.nodes)
    return f"{picture.title or 'graph'}: {nodes} {'node' if nodes == 1 else 'nodes'}"


def _description(picture: Picture) -> str:
    """The text alternative: each node with its state and its targets."""
    following: dict[str, list[str]] = {}
    labels = {node.id: node.label or str(node.shape) for node in picture.nodes}
    for edge in picture.edges[:400]:
        when = f" when {edge.label}" if edge.label and edge.look is not EdgeStyle.failure else ""
        following.setdefault(edge.source, []).append(f"{labels[edge.target]}{when}")
    lines = [
        f"{labels[node.id]}{f' ({WORDS[node.state]})' if node.state in WORDS else ''}"
        f"{' leads to ' + ', '.join(following[node.id]) if node.id in following else ''}"
        for node in picture.nodes[:200]
    ]
    return "; ".join(lines) + "."


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
