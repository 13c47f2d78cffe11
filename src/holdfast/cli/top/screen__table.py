"""Tables that fit: where the terminal is narrow, what matters least is left out."""

from __future__ import annotations

import msgspec
from rich.cells import cell_len

from holdfast.cli.inbox.text_spans import Line, Span, cut, flat, padded

_GAP = 2


class Column(msgspec.Struct, frozen=True):
    """`matters`: the least is left out first. The first column of a table stays, and is cut where need be."""

    head: str
    cells: list[Span]
    matters: int = 0
    right: bool = True

    @property
    def wide(self) -> int:
        return max(cell_len(self.head), *(cell_len(text) for text, _ in self.cells), 0)


def table(columns: list[Column], width: int) -> list[Line]:
    """A head and a line for each row, none of them wider than that."""
    first, *rest = columns
    kept = sorted(rest, key=lambda column: -column.matters)
    while kept and _sum(kept) + min(first.wide, width // 4) > width:
        kept.pop()
    shown = [column for column in rest if column in kept]
    name = max(min(first.wide, width - _sum(shown)), 1)
    head: Line = [(padded(first.head, name), "dim")]
    head += [(_cell(column, column.head), "dim") for column in shown]
    lines = [head]
    for i, (text, style) in enumerate(first.cells):
        line: Line = [(padded(cut(flat(text), name), name), style)]
        line += [(_cell(column, column.cells[i][0]), column.cells[i][1]) for column in shown]
        lines.append(line)
    return lines


def _sum(columns: list[Column]) -> int:
    return sum(column.wide + _GAP for column in columns)


def _cell(column: Column, text: str) -> str:
    fill = " " * (column.wide - cell_len(text))
    gap = " " * _GAP
    return gap + (fill + text if column.right else text + fill)
