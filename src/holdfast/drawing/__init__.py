"""Pictures of graphs: one layered layout, drawn as SVG and as text, in plain Python.

Describe the drawing as a `Picture` (nodes with a label, a shape, a state, a mark and a note; edges with
a label, a look and a mark), or make one from a flow with `from_graph`. Then draw it:

    picture = from_graph(graph, {"pay": NodeOverlay(state=State.failed, note="3 attempts")})
    to_svg(picture)                  # a whole SVG document; can be embedded in an HTML page
    to_text(picture, width=100)      # lines of spans with style names; `.plain` is one string

States show the progress of a run (`done`, `failed`, `asking`, ...). Marks highlight: `taken` for the edges
of a run; `added`, `removed` and `changed` for a comparison. Both are shown by sign, word and colour.
There is no input or output, and the same picture always gives the same drawing.
"""

from __future__ import annotations

from holdfast.drawing.character_grid import TextSpan
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
