"""For terminals that know nothing but ASCII and its neighbours."""

from __future__ import annotations

import sys

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

_PLAIN = str.maketrans(
    {"│": "|", "┃": "#", "─": "-", "━": "=", "…": "~", "·": "-", "\N{NO-BREAK SPACE}": " "}
)


class AsciiFilter(LineFilter):
    """What the encoding of the terminal does not know becomes a sign like it, or a question mark."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        known = getattr(sys.__stderr__, "encoding", None) or "ascii"
        return [
            Segment(text.translate(_PLAIN).encode(known, "replace").decode(known), style, control)
            for text, style, control in segments
        ]
