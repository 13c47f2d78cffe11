"""Pictures of graphs: one layered layout, drawn as SVG and as text, in plain Python.

Say what is to be drawn as a `Picture` (nodes with a label, a shape, a state, a mark and a note; edges with
a label, a look and a mark), or make one of a flow with `from_graph`. Then draw it:

    picture = from_graph(graph, {"pay": Told(state=State.failed, note="3 attempts")})
    to_svg(picture)                  # a whole SVG document; also fit to stand inside an HTML page
    to_text(picture, width=100)      # lines of spans with style names; `.plain` is one string

States say how far a run is (`done`, `failed`, `asking`, ...). Marks say what to notice: `taken` for the edges
a run went along; `added`, `removed` and `changed` for a comparison. Both are shown by sign, word and colour.
Nothing here reads or writes anything, and the same picture always gives the same drawing.
"""

from __future__ import annotations

from holdfast.drawing.canvas import TextSpan
from holdfast.drawing.flow_picture import NodeOverlay, from_graph
from holdfast.drawing.layout import Layout, Ruler, lay_out
from holdfast.drawing.picture import EdgeStyle, Highlight, NodeShape, Picture, PictureEdge, PictureNode, State
from holdfast.drawing.svg import SvgRuler, to_svg
from holdfast.drawing.terminal import TextDrawing, TextRuler, to_text

__all__ = [
    "EdgeStyle",
    "Highlight",
    "Layout",
    "NodeOverlay",
    "NodeShape",
    "Picture",
    "PictureEdge",
    "PictureNode",
    "Ruler",
    "State",
    "SvgRuler",
    "TextDrawing",
    "TextRuler",
    "TextSpan",
    "from_graph",
    "lay_out",
    "to_svg",
    "to_text",
]
