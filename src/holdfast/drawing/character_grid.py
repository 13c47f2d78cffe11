"""A grid of characters: boxes, words, and lines that join if they belong together, else cross."""

from __future__ import annotations

import msgspec

from holdfast.drawing.state_signs import columns

NORTH, EAST, SOUTH, WEST = 1, 2, 4, 8
UPRIGHT, LEVEL = NORTH | SOUTH, EAST | WEST

_LINES = " │─╰││╭├─╯─┴╮┤┬┼"
"""Line characters, by the sum of the directions in which a line leaves its cell."""

_PLAIN = str.maketrans(
    {"…": ".", "\u2013": "-", "·": "-", "\u00d7": "x", "▼": "v", "◀": "<", "▶": ">", "●": "o", "◉": "o"}
)


class TextSpan(msgspec.Struct, frozen=True):
    """Characters of one style. Styles are words (a state, a mark, `line`, `label`, `note`); the caller maps
    them to colours."""

    text: str
    style: str = ""


class _Cell(msgspec.Struct):
    text: str | None = None
    style: str = ""
    lines: dict[int, int] = {}


class Canvas:
    def __init__(self) -> None:
        self._cells: dict[tuple[int, int], _Cell] = {}
        self.height = 0
        self.width = 0

    def _cell(self, row: int, col: int) -> _Cell:
        self.height, self.width = max(self.height, row + 1), max(self.width, col + 1)
        return self._cells.setdefault((row, col), _Cell())

    def write(self, row: int, col: int, text: str, style: str = "") -> None:
        for char in text:
            wide = columns(char)
            if not wide:
                continue
            for i in range(wide):
                cell = self._cell(row, col + i)
                cell.text, cell.style = ("" if i else char), style
            col += wide

    def line(self, row: int, col: int, directions: int, owner: int, style: str) -> None:
        """Lines of one owner join wherever they meet."""
        cell = self._cell(row, col)
        cell.lines[owner] = cell.lines.get(owner, 0) | directions
        if cell.text is None and _outranks(style, cell.style):
            cell.style = style

    def box(self, row: int, col: int, width: int, height: int, style: str) -> None:
        right, bottom = col + width - 1, row + height - 1
        for r in (row, bottom):
            self.write(r, col + 1, "─" * (width - 2), style)
        for r in range(row + 1, bottom):
            self.write(r, col, "│", style)
            self.write(r, right, "│", style)
        for r, c, corner in ((row, col, "╭"), (row, right, "╮"), (bottom, col, "╰"), (bottom, right, "╯")):
            self.write(r, c, corner, style)

    def paste(self, other: Canvas, row: int, col: int) -> None:
        for (r, c), cell in other._cells.items():
            mine = self._cell(row + r, col + c)
            mine.text, mine.style = _drawn(cell), cell.style

    def lines(self, *, ascii_only: bool = False) -> list[list[TextSpan]]:
        return [self._spans(row, ascii_only=ascii_only) for row in range(self.height)]

    def _spans(self, row: int, *, ascii_only: bool) -> list[TextSpan]:
        """Adjacent characters of one style are one span; trailing blanks are left out."""
        spans: list[TextSpan] = []
        for col in range(self.width):
            cell = self._cells.get((row, col))
            text, style = (" ", "") if cell is None else (_drawn(cell), cell.style)
            text = _ascii(text) if ascii_only else text
            if spans and spans[-1].style == style:
                spans[-1] = TextSpan(spans[-1].text + text, style)
            else:
                spans.append(TextSpan(text, style))
        while spans and not spans[-1].text.strip():
            spans.pop()
        return spans


def _outranks(style: str, than: str) -> bool:
    """If lines share a cell, taken and marked ones take precedence."""
    return not than or than == "line" or (than == "dead" and style != "line")


def _drawn(cell: _Cell) -> str:
    if cell.text is not None:
        return cell.text
    found = list(cell.lines.values())
    if len(found) > 1 and all(lines in (UPRIGHT, LEVEL) for lines in found):
        return "│" if UPRIGHT in found else "─"  # lines of different owners cross; they do not join
    joined = 0
    for lines in found:
        joined |= lines
    return _LINES[joined]


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    plain = text.translate(_PLAIN)
    for lines in ("│", "─"):
        plain = plain.replace(lines, "|" if lines == "│" else "-")
    return "".join(c if c.isascii() else "+" if c in _LINES or c in "╭╮╰╯" else "?" for c in plain)
