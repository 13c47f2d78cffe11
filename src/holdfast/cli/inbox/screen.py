"""The whole screen: a head, the list and the hold beside each other or one of them, and a foot."""

from __future__ import annotations

from typing import Final

import msgspec

from holdfast.cli.inbox.hold_view import detail_lines
from holdfast.cli.inbox.list_view import list_lines
from holdfast.cli.inbox.state import VIEWS, InboxState
from holdfast.cli.inbox.text_spans import Line, Span, cut, fitted, flat, length, wrapped
from holdfast.model.template import as_text

SPLIT: Final = 110
"""Columns from which the list and the hold are both in sight."""
_LEAST: Final = 46
_ROOMY: Final = 80
HELP: Final = (
    ("j k", "down, up (scroll, in an open hold)"),
    ("Enter o", "open"),
    ("u Esc", "back"),
    ("[ ]", "the one before, the next"),
    ("1 … 9", "choose a decision; Enter then makes it"),
    ("z", "take the last decision back"),
    ("x  J K", "select; select while moving"),
    ("c", "comment"),
    ("b  y", "ask back; reply to what was asked back"),
    ("r", "hand on to somebody else"),
    ("m", "claim, or let go"),
    ("s", "snooze"),
    ("w", "watch"),
    ("e", "all of the context, and the history"),
    ("/", "search: flow:refund priority>=high due<2d assignee:me tag:vat has:comment words"),
    ("g m", "views: " + ", ".join(f"{key} {name}" for key, name in VIEWS.items())),
    ("n R", "show what is new"),
    ("?", "this"),
    ("q", "leave (also Ctrl-C)"),
)


class ScreenFrame(msgspec.Struct, frozen=True):
    """Exactly as many lines as the terminal has. `cursor`: where the next letter goes (row, column)."""

    lines: list[Line]
    cursor: tuple[int, int] | None = None


def frame(state: InboxState, width: int, height: int, *, ascii_only: bool = False) -> ScreenFrame:
    head = _head(state, width)
    foot, column = _foot(state, width)
    room = max(height - len(head) - len(foot), 1)
    body = _body(state, width, room, ascii_only=ascii_only)[:room]
    lines = [*head, *body, *([] for _ in range(room - len(body))), *foot][-height:]
    cursor = None if column is None else (len(lines) - _after_input(state, width) - 1, column)
    return ScreenFrame(lines, cursor)


def _body(state: InboxState, width: int, height: int, *, ascii_only: bool) -> list[Line]:
    if state.help:
        lines = _help(width)
        return lines[min(state.scroll, max(len(lines) - height, 0)) :]
    if width < SPLIT:
        if state.open:
            return detail_lines(state, width, height)
        return list_lines(state, width, height, ascii_only=ascii_only)
    left = max(width * 2 // 5, _LEAST)
    cards = list_lines(state, left, height, ascii_only=ascii_only)
    beside = detail_lines(state, width - left - 3, height)
    wall = "┃" if state.open else "│"
    return [
        [*fitted(_at(cards, i), left), (f" {wall} ", "dim"), *_at(beside, i)]
        for i in range(max(len(cards), len(beside), height))
    ]


def _at(lines: list[Line], i: int) -> Line:
    return lines[i] if i < len(lines) else []


def _head(state: InboxState, width: int) -> list[Line]:
    own = f"{len(state.rows)}{'+' if state.more else ''}"
    counts = {view: str(count) for view, count in state.counts.items()} | {state.view: own}
    views = [_tab(view, counts[view], view == state.view) for view in VIEWS.values() if view in counts]
    if sum(len(text) for text, _ in views) + 6 > width:
        views = [_tab(state.view, own, True)]
    line: Line = [("Inbox ", "bold"), *views]
    who = flat(state.me)
    room = width - length(line) - len(who)
    first = [*line, (" " * max(room, 2), ""), (who, "dim")] if room >= 2 else line
    chips = [(f"search: {'  '.join(state.chips)}  (Esc: all)", "warm")] if state.query else []
    marked = [(f"{len(state.selected)} selected  ", "bold")] if state.selected else []
    second: list[Line] = [fitted([*marked, *chips], width)] if chips or marked else []
    return [fitted(first, width), *second, []]


def _tab(view: str, count: str, now: bool) -> Span:
    """The one that is shown stands in brackets."""
    return (f"[{view} {count}]", "bold") if now else (f" {view} {count} ", "dim")


def _foot(state: InboxState, width: int) -> tuple[list[Line], int | None]:
    """And the column of the cursor, where something is typed."""
    if state.prompt is not None:
        return _prompt(state, width)
    style = "alert" if state.alert else "bold"
    said: list[Line] = [[(line, style)] for line in wrapped(state.said, width)[:6]] if state.said else []
    return [*said, [(cut(_hints(state, width), width), "dim")]], None


def _hints(state: InboxState, width: int) -> str:
    if state.help:
        return "j k scroll   any other key: back"
    if state.prefix:
        return "g, then: " + "  ".join(f"{key} {name}" for key, name in VIEWS.items())
    if state.armed is not None or state.sure:
        return "Enter: yes   any other key: no"
    if width < _ROOMY:
        return "1-9 decide  u back  ? help" if state.open else "j k  Enter open  ? help  q leave"
    if state.open:
        return "1-9 decide  c comment  r hand on  m claim  e all  [ ] others  u back  ? help"
    return "j k move  Enter open  1-9 decide  / search  x select  g views  ? help  q leave"


def _prompt(state: InboxState, width: int) -> tuple[list[Line], int]:
    prompt = state.prompt
    assert prompt is not None
    room = max(width - 3, 1)
    text = prompt.text if len(prompt.text) <= room else prompt.text[-room:]
    shown = flat(text) + (" " if text.endswith(" ") else "")
    lines: list[Line] = [[(cut(_so_far(state), width), "dim")]] if _so_far(state) else []
    lines += [[(line, "bold")] for line in wrapped(prompt.label, width)]
    lines += [[(line, "alert")] for line in wrapped(prompt.error, width)] if prompt.error else []
    lines.append([("> ", "key"), (shown, "")])
    column = length(lines[-1])
    lines += [[(line, "dim")] for line in wrapped(prompt.hint, width)] if prompt.hint else []
    return [*lines, [(cut("Enter: go on   Esc: leave it   Ctrl-U: empty the line", width), "dim")]], column


def _so_far(state: InboxState) -> str:
    """What is filled in by now: nobody has to remember it."""
    filling = state.filling
    if filling is None or not filling.values:
        return ""
    text = " · ".join(f"{name} {flat(as_text(value))}" for name, value in filling.values.items())
    return f"{filling.decision}: {text}"


def _after_input(state: InboxState, width: int) -> int:
    """Lines of the foot below the one that is typed in."""
    hint = "" if state.prompt is None else state.prompt.hint
    return 1 + (len(wrapped(hint, width)) if hint else 0)


def _help(width: int) -> list[Line]:
    lines: list[Line] = []
    for keys, text in HELP:
        first, *rest = wrapped(text, max(width - 11, 5))
        lines.append([(f" {keys:9} ", "key"), (first, "")])
        lines += [[(" " * 11, ""), (each, "")] for each in rest]
    return [*lines, [], [(cut(" A decision always takes two keys.", width), "dim")]]
