"""Signs and words for states and shapes, and how wide a text is in a terminal."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

from holdfast.drawing.picture import Mark, Shape, State

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
    State.waiting: "waits for a time",
    State.asking: "waits for a person",
    State.skipped: "skipped",
    State.unknown: "outcome unknown",
}
SHAPE_SIGNS = {
    Shape.hold: "☺",
    Shape.timer: "⧖",
    Shape.map: "≡",
    Shape.subflow: "⊞",
    Shape.guard: "◈",
    Shape.choice: "◇",
    Shape.fork: "⑂",
    Shape.meet: "⑃",
    Shape.tool: "$",
    Shape.manager: "◉",
    Shape.entry: "▷",
    Shape.exit: "□",
}
ASCII_SHAPES = {
    Shape.hold: "@",
    Shape.timer: "%",
    Shape.map: "*",
    Shape.subflow: "#",
    Shape.guard: "&",
    Shape.choice: "/",
    Shape.fork: "<",
    Shape.meet: ">",
    Shape.tool: "$",
    Shape.manager: "=",
    Shape.entry: "(",
    Shape.exit: ")",
}
SHAPE_WORDS = {
    Shape.hold: "asks a person",
    Shape.timer: "waits for a time",
    Shape.map: "for each item",
    Shape.subflow: "a flow of its own",
    Shape.guard: "guards",
    Shape.choice: "chooses a way",
    Shape.fork: "branches begin",
    Shape.meet: "branches meet",
    Shape.tool: "runs a command",
    Shape.manager: "looks after a child",
    Shape.entry: "the start",
    Shape.exit: "the exit",
}
MARK_SIGNS = {Mark.added: "+", Mark.removed: "-", Mark.changed: "~"}


def columns(text: str) -> int:
    """How many columns a terminal gives to it."""
    return len(text) if text.isascii() else sum(_column(char) for char in text)


def _column(char: str) -> int:
    if combining(char):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def shortened(text: str, limit: int) -> str:
    """One line of at most so many columns; what is cut shows that it was."""
    line = " ".join(text.split())
    if columns(line) <= limit:
        return line
    kept = ""
    for char in line:
        if columns(kept) + _column(char) > limit - 1:
            break
        kept += char
    return kept.rstrip() + "…"
