"""One hold, to be read and decided: the question, why it is here, what it shows and asks, the comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from holdfast.cli.commands.holds.show import comment_line
from holdfast.cli.inbox.state import HoldDetails, InboxState
from holdfast.cli.output.console import clean_text, one_line
from holdfast.cli.output.forms import decided_lines, form_lines
from holdfast.drawing.state_signs import shortened
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
LABEL = 40
"""Characters of an option's label at the bottom: one that is longer must not hide the others."""
BRIEF = 8
"""Lines of context that are shown until `e` shows all."""


class HoldPane(Vertical):
    """The decisions stay at the bottom while the rest scrolls."""

    def __init__(self) -> None:
        super().__init__(id="hold")
        self._shown = ""

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="pages", can_focus=False):
            yield Static(id="facts")
        yield Static(id="decisions")

    def show(self, state: InboxState) -> None:
        shown = "" if state.sheet is None else state.sheet.row.id
        if shown != self._shown:
            self.pages.scroll_home(animate=False)
        self._shown = shown
        facts, decisions = self.query_one("#facts", Static), self.query_one("#decisions", Static)
        width = max(self.pages.scrollable_content_region.width - 1, 20)
        facts.update(Group() if state.sheet is None else _page(state, state.sheet, width))
        bar = decision_bar(state)
        decisions.display = bool(bar)
        decisions.update(bar)

    @property
    def pages(self) -> VerticalScroll:
        return self.query_one("#pages", VerticalScroll)


def _page(state: InboxState, sheet: HoldDetails, width: int) -> Group:
    row = sheet.row
    parts: list[RenderableType] = [*_banner(state, row)]
    parts += [Text(clean_text(row.prompt.strip() or title_of(row)), style="bold"), ""]
    parts.append(_table([*_facts(state, row), *(("voted", vote) for vote in sheet.votes)]))
    if row.resolution:
        parts += _section("Decided values", list(decided_lines(row)))
    else:
        parts += _section("Form", list(form_lines(row)))
    parts += _section("Options", _long_options(row))
    parts += _section("Context", _context(row, width, None if state.expanded else BRIEF))
    parts += _section("Comments", [comment_line(each, state.now) for each in sheet.notes])
    if sheet.draft and state.filling is None:
        given = {name: value for name, value in sheet.draft.items() if value is not None}
        parts += _section("Your draft", _listed(given))
    if state.expanded:
        parts += _section("History", list(sheet.history))
    return Group(*parts)


def _banner(state: InboxState, row: HoldRow) -> Iterator[RenderableType]:
    outcome, claim = outcome_of(row, state.now), claim_of(row, state.now)
    text = outcome or placed_of(row, state.now) or (f"claimed by {claim}" if claim else "")
    if text:
        yield Text(one_line(text[:1].upper() + text[1:]), style="bold red" if outcome else "yellow")
        yield ""


def _facts(state: InboxState, row: HoldRow) -> list[tuple[str, str]]:
    due = countdown(row, state.now) if row.status is HoldStatus.pending else ""
    deadline = f"{due}, at {clock_time(row.expires_at)}" if due and row.expires_at else due
    if row.paused_at is not None:
        deadline = "paused until the reply" if due else ""
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


def _table(facts: list[tuple[str, str]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True, width=10)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(one_line(value)))
    return table


def _section(title: str, texts: list[str]) -> list[RenderableType]:
    if not texts:
        return []
    lines = [Padding(Text(clean_text(text), overflow="fold"), (0, 0, 0, 2)) for text in texts]
    return ["", Text(title, style="bold cyan"), *lines]


def _long_options(row: HoldRow) -> list[str]:
    """In full, where one of them is cut off at the bottom."""
    labels = [one_line(option.text) for option in row.options or ()]
    if all(len(label) <= LABEL for label in labels):
        return []
    return [f"{digit} {label}" for digit, label in enumerate(labels, 1)]


def _context(row: HoldRow, width: int, limit: int | None) -> list[str]:
    console = Console(width=width)
    context: Any = msgspec.json.decode(row.context)
    texts = _listed(cast("dict[str, Any]", context)) if context else []
    lines = [line.plain for text in texts for line in Text(clean_text(text)).wrap(console, width - 2)]
    if limit is None or len(lines) <= limit:
        return texts
    return [*lines[:limit], f"… {len(lines) - limit} more lines: e"]


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


def decision_bar(state: InboxState) -> Content:
    """What can be decided, by digit. Words say what a colour would."""
    row = state.current
    if row is None or row.status is not HoldStatus.pending or row.read_only:
        return Content("")
    options = row.options or (Option(id="", label="answer in words"),)
    parts = [_choice(state, digit, option) for digit, option in enumerate(options[:DIGITS], 1)]
    # A long one beside another would be broken in the middle of either.
    bar = Content("\n" if _long_options(row) else "   ").join(parts)
    if len(options) <= DIGITS:
        return bar
    rest = f"{len(options) - DIGITS} more: holdfast holds resolve {row.id[:8]}"
    return Content("\n").join([bar, Content.styled(rest, "dim")])


def _choice(state: InboxState, digit: int, option: Option) -> Content:
    armed = state.armed == option.id
    notes = [
        *(["careful"] if option.variant == "danger" else []),
        *(["why?"] if option.requires_comment is True else []),
    ]
    text = shortened(one_line(option.text), LABEL) + (f" ({', '.join(notes)})" if notes else "")
    # Without breaks inside one of them.
    shown = (f"[{text}: Enter]" if armed else text).replace(" ", "\N{NO-BREAK SPACE}")
    style = "reverse bold" if armed else "$text-error" if option.variant == "danger" else ""
    return Content.assemble((f"{digit}", "bold $text-accent"), "\N{NO-BREAK SPACE}", (shown, style))
