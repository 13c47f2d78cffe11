"""Lines of a screen: pieces of text with a style, cut and wrapped by what a terminal shows of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.cells import cell_len, chop_cells, set_cell_size

from holdfast.cli.output.screen import clean_text

Span = tuple[str, str]
Line = list[Span]

STYLES: Final = {
    "": "",
    "bold": "1",
    "dim": "2",
    "current": "7",
    "alert": "1;31",
    "good": "32",
    "warm": "33",
    "key": "1",
    "faded": "2;9",
}
_NO_COLOUR: Final = {"alert": "1", "good": "", "warm": ""}


def flat(text: str) -> str:
    """On one line, and nothing in it that moves a terminal."""
    return " ".join(clean_text(text).split())


def cut(text: str, width: int) -> str:
    """At most so many cells; an ellipsis says that there is more."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + ("…" if width > 0 else "")


def padded(text: str, width: int) -> str:
    return set_cell_size(cut(text, width), max(width, 0))


def wrapped(text: str, width: int) -> list[str]:
    """By words, and within a word that is too long. Its own lines stay."""
    return list(_wrapped(text, width))


@lru_cache(maxsize=256)
def _wrapped(text: str, width: int) -> tuple[str, ...]:
    """Kept, because a screen is drawn each second and its texts stay."""
    found: list[str] = []
    for line in clean_text(text).expandtabs(4).splitlines() or [""]:
        found += _wrap_line(line, max(width, 1))
    return tuple(found)


def _wrap_line(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())][: width // 2]
    rows: list[str] = []
    row = indent
    for word in line.split():
        for part in chop_cells(word, max(width - cell_len(indent), 1)):
            glue = "" if row == indent else " "
            if cell_len(row) + len(glue) + cell_len(part) > width and row != indent:
                rows.append(row)
                row, glue = indent, ""
            row += glue + part
    return [*rows, row]


def length(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


def fitted(line: Line, width: int) -> Line:
    """Exactly so wide."""
    found: Line = []
    room = width
    for text, style in line:
        shown = cut(text, room)
        found.append((shown, style))
        room -= cell_len(shown)
    return [*found, (" " * room, found[-1][1] if found and found[-1][1] == "current" else "")]


def plain(line: Line) -> str:
    return "".join(text for text, _ in line)


def painted(line: Line, *, colour: bool) -> str:
    """With the codes of a terminal."""
    found: list[str] = []
    for text, style in line:
        code = STYLES[style] if colour else _NO_COLOUR.get(style, STYLES[style])
        found.append(f"\x1b[{code}m{text}\x1b[0m" if code and text else text)
    return "".join(found)
