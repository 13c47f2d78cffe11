"""Signs and words for states and shapes, and the width of a text in a terminal."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from holdfast.drawing.picture import Highlight, NodeShape, State

SIGNS = {
    State.ready: "·",
    State.running: "▶",
    State.done: "✓",
    State.failed: "✗",
    State.waiting: "◷",
    State.asking: "⏸",
    State.skipped: "\u2013",
    State.unknown: "?",
}
ASCII_SIGNS = {
    State.ready: ".",
    State.running: ">",
    State.done: "v",
    State.failed: "x",
    State.waiting: "~",
    State.asking: "?",
    State.skipped: "-",
    State.unknown: "!",
}
WORDS = {
    State.ready: "ready",
    State.running: "running",
    State.done: "done",
    State.failed: "failed",
    State.waiting: "sleeping",
    State.asking: "waiting for input",
    State.skipped: "skipped",
    State.unknown: "outcome unknown",
}
SHAPE_SIGNS = {
    NodeShape.hold: "☺",
    NodeShape.timer: "⧖",
    NodeShape.map: "≡",
    NodeShape.subflow: "⊞",
    NodeShape.guard: "◈",
    NodeShape.choice: "◇",
    NodeShape.fork: "⑂",
    NodeShape.meet: "⑃",
    NodeShape.tool: "$",
    NodeShape.manager: "◉",
    NodeShape.entry: "▷",
    NodeShape.exit: "□",
}
ASCII_SHAPES = {
    NodeShape.hold: "@",
    NodeShape.timer: "%",
    NodeShape.map: "*",
    NodeShape.subflow: "#",
    NodeShape.guard: "&",
    NodeShape.choice: "/",
    NodeShape.fork: "<",
    NodeShape.meet: ">",
    NodeShape.tool: "$",
    NodeShape.manager: "=",
    NodeShape.entry: "(",
    NodeShape.exit: ")",
}
SHAPE_WORDS = {
    NodeShape.hold: "asks a person",
    NodeShape.timer: "waits for a time",
    NodeShape.map: "for each item",
    NodeShape.subflow: "a sub-flow",
    NodeShape.guard: "guards",
    NodeShape.choice: "chooses an edge",
    NodeShape.fork: "branches start",
    NodeShape.meet: "branches join",
    NodeShape.tool: "runs a command",
    NodeShape.manager: "manages a child pipeline",
    NodeShape.entry: "the start",
    NodeShape.exit: "the exit",
}
MARK_SIGNS = {Highlight.added: "+", Highlight.removed: "-", Highlight.changed: "~"}


def columns(text: str) -> int:
    """Its width in terminal columns."""
    return len(text) if text.isascii() else sum(_column(char) for char in text)


def _column(char: str) -> int:
    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def shortened(text: str, limit: int) -> str:
    """One line of at most `width` columns; a cut text ends with an ellipsis."""
    line = " ".join(text.split())
    if columns(line) <= limit:
        return line
    kept = ""
    for char in line:
        if columns(kept) + _column(char) > limit - 1:
            break
        kept += char
    return kept.rstrip() + "…"
