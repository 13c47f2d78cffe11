"""One hold, to be read and decided: the question, why it is here, what it shows and asks, what was said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from holdfast.cli.commands.holds.show import comment_line
from holdfast.cli.inbox.state import HoldDetails, InboxState
from holdfast.cli.inbox.text_spans import Line, cut, flat, length, wrapped
from holdfast.cli.output.forms import form_lines
from holdfast.holds.queries.summary import (
    claim_of,
    countdown,
    needs_of,
    outcome_of,
    placed_of,
    roughly,
    title_of,
    why_of,
)
from holdfast.types.hold import HoldRow, Option
from holdfast.types.human_time import clock_time
from holdfast.types.status import HoldStatus

SHORT = 80
DIGITS = 9
BRIEF = 8
"""Lines of context that are shown until `e` shows all."""


def detail_lines(state: InboxState, width: int, height: int) -> list[Line]:
    """With the decisions at the bottom, whatever is above them."""
    if state.sheet is None:
        return []
    bar = list(bar_lines(state, width))
    body = list(_body(state, state.sheet, width))
    room = max(height - len(bar), 1)
    first = min(state.scroll, max(len(body) - room, 0))
    shown = body[first : first + room]
    if first + room < len(body) and shown:
        how = "j" if state.open else "Enter, then j"
        shown[-1] = [(f"  … {len(body) - first - room + 1} more lines: {how}", "dim")]
    return [*shown, *([] for _ in range(room - len(shown))), *bar]


def _body(state: InboxState, sheet: HoldDetails, width: int) -> Iterator[Line]:
    row = sheet.row
    yield from _banner(state, row, width)
    for line in wrapped(row.prompt.strip() or title_of(row), width):
        yield [(line, "bold")]
    yield []
    for name, value in [*_facts(state, row), *(("voted", vote) for vote in sheet.votes)]:
        yield from _fact(name, value, width)
    yield from _section("Form", list(form_lines(row)), width, None)
    yield from _section("Context", _context(row), width, None if state.expanded else BRIEF)
    yield from _section("Said", [comment_line(each, state.now) for each in sheet.notes], width, None)
    if sheet.draft and state.filling is None:
        yield from _section("Your draft", _listed(_draft_values(sheet.draft)), width, None)
    if state.expanded:
        yield from _section("History", list(sheet.history), width, None)


def _draft_values(draft: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in draft.items() if value is not None}


def _banner(state: InboxState, row: HoldRow, width: int) -> Iterator[Line]:
    outcome, placed = outcome_of(row, state.now), placed_of(row, state.now)
    text = outcome[:1].upper() + outcome[1:] if outcome else placed
    if not text and claim_of(row, state.now):
        text = f"Claimed by {claim_of(row, state.now)}"
    for line in wrapped(text, width) if text else ():
        yield [(line, "alert" if outcome else "warm")]
    if text:
        yield []


def _facts(state: InboxState, row: HoldRow) -> list[tuple[str, str]]:
    due = countdown(row, state.now) if row.status is HoldStatus.pending else ""
    deadline = f"{due}, at {clock_time(row.expires_at)}" if due and row.expires_at else due
    if row.paused_at is not None:
        deadline = "stands still until the reply" if due else ""
    found = [
        ("deadline", deadline),
        ("priority", row.priority),
        ("why here", why_of(row)),
        ("needs", needs_of(row)),
        ("asked", f"{roughly(state.now - row.created_at)} ago by {row.flow}, node {row.node}"),
        ("started by", row.started_by or ""),
        ("entity", row.instance_key or ""),
        ("tags", ", ".join(row.tags)),
        ("hold", row.id if state.expanded else ""),
        ("run", row.run if state.expanded else ""),
    ]
    return [(name, value) for name, value in found if value]


def _fact(name: str, value: str, width: int) -> Iterator[Line]:
    lead = 12
    lines = wrapped(flat(value), width - lead) or [""]
    yield [(f"{name:{lead}}", "dim"), (lines[0], "")]
    for line in lines[1:]:
        yield [(" " * lead, ""), (line, "")]


def _section(title: str, texts: list[str], width: int, most: int | None) -> Iterator[Line]:
    lines = [line for text in texts for line in wrapped(text, max(width - 2, 10))]
    if not lines:
        return
    yield []
    yield [(title, "bold")]
    for line in lines[:most]:
        yield [(f"  {line}", "")]
    if most is not None and len(lines) > most:
        yield [(f"  … {len(lines) - most} more lines: e", "dim")]


def _context(row: HoldRow) -> list[str]:
    context: Any = msgspec.json.decode(row.context)
    return _listed(cast("dict[str, Any]", context)) if context else []


def _listed(value: dict[str, Any]) -> list[str]:
    """`name: text`, what is short first; what is no text as JSON, in lines of its own where it is long."""
    return sorted(
        (f"{name}: {_text(each)}" for name, each in value.items()), key=lambda text: len(text) > SHORT
    )


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    found = msgspec.json.encode(value)
    return found.decode() if len(found) <= SHORT else msgspec.json.format(found, indent=2).decode()


def bar_lines(state: InboxState, width: int) -> Iterator[Line]:
    """What can be decided, by digit. Words say what a colour would."""
    row = state.current
    if row is None or row.status is not HoldStatus.pending or row.read_only:
        return
    yield [("─" * width, "dim")]
    if not row.options:
        yield [("1 ", "key"), ("answer in words", "")]
        return
    line: Line = []
    for i, option in enumerate(row.options[:DIGITS], 1):
        armed = state.armed == option.id
        gap = "   " if line else ""
        part: Line = [
            (f"{gap}{i} ", "key"),
            (cut(_option(option, armed=armed), width - 2), "current" if armed else ""),
        ]
        if line and length(line) + length(part) > width:
            yield line
            line, part = [], [(f"{i} ", "key"), part[1]]
        line += part
    yield line
    if len(row.options) > DIGITS:
        yield [(cut(f"{len(row.options) - DIGITS} more: holdfast holds resolve {row.id[:8]}", width), "dim")]


def _option(option: Option, *, armed: bool) -> str:
    label = flat(option.label)
    notes = [
        *(["careful"] if option.variant == "danger" else []),
        *(["why?"] if option.requires_comment is True else []),
    ]
    text = f"{label} ({', '.join(notes)})" if notes else label
    return f"[{text}: Enter]" if armed else text
