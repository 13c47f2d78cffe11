"""The page: the views, the list, the hold beside it or in its place, a line to type in, and a message."""

from __future__ import annotations

import sys
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.filter import LineFilter
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from holdfast.cli.inbox.hold_pane import HoldPane
from holdfast.cli.inbox.state import VIEWS, InboxState
from holdfast.cli.output.console import clean_text, one_line
from holdfast.drawing.state_signs import shortened
from holdfast.holds.queries.summary import (
    PLAIN_SIGNS,
    SIGNS,
    assignee_of,
    claim_of,
    countdown,
    outcome_of,
    placed_of,
    roughly,
    title_of,
)
from holdfast.model.forms.visible_text import signs_for_terminal
from holdfast.model.template import as_text
from holdfast.types.hold import HoldRow
from holdfast.types.status import HoldStatus

WIDE = 90
FILLED = 30
"""Characters of a value that is filled in already."""
_EMPTY = {
    "mine": "No open holds for you.",
    "groups": "No open holds for your groups and roles.",
    "asked": "No questions to you.",
    "unassigned": "No unassigned holds.",
    "watching": "You watch no holds.",
    "snoozed": "No snoozed holds.",
    "done": "You have decided no holds yet.",
    "breakpoints": "No run is stopped at a breakpoint.",
}
_SIGN_STYLES = {"critical": "bold $text-error", "high": "$text-warning", "low": "dim"}
_PLAIN = str.maketrans(
    {"│": "|", "┃": "#", "─": "-", "━": "=", "…": "~", "·": "-", "\N{NO-BREAK SPACE}": " "}
)


class HoldList(OptionList, can_focus=False):
    """The app moves its cursor: keys have one meaning, whichever widget is in use."""

    def show(self, state: InboxState, *, plain: bool) -> None:
        width = self.scrollable_content_region.width
        cards = [_card(state, i, width, plain=plain) for i in range(len(state.rows))]
        if [option.id for option in self.options] != [row.id for row in state.rows]:
            self.set_options(Option(card, id=row.id) for card, row in zip(cards, state.rows, strict=True))
        for i, (option, card) in enumerate(zip(self.options, cards, strict=True)):
            if option.prompt is not card and not _is_same(option.prompt, card):
                self.replace_option_prompt_at_index(i, card)
        self.highlighted = state.at if state.rows else None


def _is_same(shown: object, card: Content) -> bool:
    return isinstance(shown, Content) and shown.is_same(card)


def empty_text(state: InboxState) -> str:
    text = "No matching holds." if state.query else _EMPTY.get(state.view, "No open holds.")
    return f"{text}\ng a shows all views' holds, ? shows the keys."


def _card(state: InboxState, index: int, width: int, *, plain: bool) -> Content:
    row = state.rows[index]
    marks = f"{'>' if index == state.at else ' '}{'x' if row.id in state.selected else ' '} "
    sign = (PLAIN_SIGNS if plain else SIGNS).get(row.priority, "")
    body = "" if row.status is HoldStatus.pending else "dim strike"
    priority = f"{sign:2} {row.priority:8} ", _SIGN_STYLES.get(row.priority, "")
    head = Content.assemble(marks, priority, (one_line(title_of(row)), body or "bold"))
    if width < WIDE:
        second = Content.styled(f"      {' · '.join(_facts(state, row))}", body or "dim")
        return Content("\n").join([head, second])
    due = _due(state, row) if row.status is HoldStatus.pending else str(row.status)
    # In one's own list the assignee goes without saying.
    whom = [] if state.view == "mine" else [(assignee_of(row), 20)]
    cells = [(row.flow, 14), *whom, (roughly(state.now - row.created_at), 7), (due, 16)]
    right = Content(" ").join(
        Content(one_line(text)).truncate(size, ellipsis=True, pad=True) for text, size in cells
    )
    room = max(width - right.cell_length - 1, 1)
    return Content(" ").join([head.truncate(room, ellipsis=True, pad=True), right.stylize(body)])


def _facts(state: InboxState, row: HoldRow) -> list[str]:
    """What is most pressing first: the rest may be cut off."""
    claimed = claim_of(row, state.now)
    found = [_due(state, row), f"claimed: {claimed}" if claimed else "", row.flow, assignee_of(row)]
    return [one_line(each) for each in [*found, f"{roughly(state.now - row.created_at)} old"] if each]


def _due(state: InboxState, row: HoldRow) -> str:
    if row.status is not HoldStatus.pending:
        return outcome_of(row, state.now)
    if placed_of(row, state.now) and row.placed_by == state.me:
        return "decided, z: undo"
    return countdown(row, state.now)


class PromptInput(Input):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "continue", key_display="Enter"),
        Binding("escape", "app.cancel", "cancel", key_display="Esc"),
        Binding("ctrl+u", "delete_left_all", "clear", key_display="Ctrl-U"),
    ]


class PromptLine(Vertical):
    """Closed while nothing is asked for. What is typed is the widget's; the state has what it began with."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: tuple[object, ...] | None = None
        self._begun_with = ""

    def compose(self) -> ComposeResult:
        yield Static(id="filled", markup=False)
        yield Static(id="label", markup=False)
        yield Static(id="problem", markup=False)
        yield PromptInput(id="typed", compact=True, select_on_focus=False)
        yield Static(id="hint", markup=False)

    @property
    def typed(self) -> Input:
        return self.query_one(Input)

    def show(self, state: InboxState) -> None:
        prompt, filling = state.prompt, state.filling
        self.display = prompt is not None
        if prompt is None:
            self._asked = None
            # `has_focus` follows later; a line that keeps the focus would take the next letters.
            if self.screen.focused is self.typed:
                self.screen.set_focus(None)
            return
        self._update("#filled", _filled(state))
        self._update("#label", one_line(prompt.label))
        self._update("#problem", clean_text(prompt.error))
        self._update("#hint", clean_text(prompt.hint))
        asked = (prompt.kind, prompt.label, prompt.holds, filling and (filling.hold, filling.field))
        if asked != self._asked:
            self._asked = asked
            self.typed.value = prompt.text
            self.typed.cursor_position = len(prompt.text)
        self._begun_with = self.typed.value
        self.screen.set_focus(self.typed)

    def on_input_changed(self, event: Input.Changed) -> None:
        """A problem is shown until the text is edited."""
        if event.value != self._begun_with:
            self._update("#problem", "")

    def _update(self, selector: str, text: str) -> None:
        part = self.query_one(selector, Static)
        part.display = bool(text)
        part.update(text)


def _filled(state: InboxState) -> str:
    """The fields filled in so far."""
    filling = state.filling
    if filling is None or not filling.values:
        return ""
    text = " · ".join(
        f"{one_line(name)} {shortened(one_line(as_text(value)), FILLED)}"
        for name, value in filling.values.items()
    )
    return f"{one_line(filling.decision)}: {text}"


class AsciiFilter(LineFilter):
    """What the encoding of the terminal does not know becomes a sign like it, or a question mark."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        known = getattr(sys.__stderr__, "encoding", None) or "ascii"
        return [
            Segment(text.translate(_PLAIN).encode(known, "replace").decode(known), style, control)
            for text, style, control in segments
        ]


class ControlFilter(LineFilter):
    """Nothing that a widget shows moves or recolours the terminal. Texts of holds are clean before; what
    stands in the line to type in (a draft, a paste) is as it was written."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text if control else signs_for_terminal(text), style, control)
            for text, style, control in segments
        ]


class InboxView(Vertical):
    def compose(self) -> ComposeResult:
        yield Static(id="views", markup=False)
        yield Static(id="search", markup=False)
        with Horizontal(id="main"):
            with Vertical(id="list"):
                yield Static(id="new", markup=False)
                yield HoldList(compact=True)
                yield Static(id="empty", markup=False)
            yield HoldPane()
        yield PromptLine()
        yield Static(id="message", markup=False)

    @property
    def hold(self) -> HoldPane:
        return self.query_one(HoldPane)

    @property
    def prompt(self) -> PromptLine:
        return self.query_one(PromptLine)

    def show(self, state: InboxState, *, plain: bool) -> None:
        """The list and the hold are both visible where the state says `split`."""
        self.set_class(state.split, "-split")
        self.query_one("#views", Static).update(_views_line(state, self.size.width - 2))
        self._update("#search", _search_line(state))
        self.query_one("#list").display = state.split or not state.open
        self._update("#new", f"{len(state.fresh)} new: n shows them" if state.fresh else "")
        self._update("#empty", "" if state.rows else empty_text(state))
        holds = self.query_one(HoldList)
        holds.display = bool(state.rows)
        holds.show(state, plain=plain)
        self.hold.display = state.split or state.open
        self.hold.set_class(state.open, "-open")
        self.hold.show(state)
        self.prompt.show(state)
        self._update("#message", "" if state.prompt is not None else clean_text(state.message))
        self.query_one("#message").set_class(state.alert, "-alert")

    def _update(self, selector: str, text: str) -> None:
        part = self.query_one(selector, Static)
        part.display = bool(text)
        part.update(text)


def _views_line(state: InboxState, width: int) -> Content:
    """The view that is shown is in brackets."""
    counts = {view: str(count) for view, count in state.counts.items()}
    counts[state.view] = f"{len(state.rows)}{'+' if state.more else ''}"
    views = [
        Content.styled(f"[{view} {counts[view]}]", "bold $text-primary")
        if view == state.view
        else Content.styled(f" {view} {counts[view]} ", "dim")
        for view in VIEWS.values()
        if view in counts
    ]
    line = Content.styled("Inbox ", "bold") + Content("").join(views)
    who = one_line(state.me)
    room = width - line.cell_length - len(who)
    return line if room < 2 else Content.assemble(line, " " * room, (who, "dim"))


def _search_line(state: InboxState) -> str:
    marked = f"{len(state.selected)} selected  " if state.selected else ""
    search = f"search: {'  '.join(map(one_line, state.chips))}  (Esc: all)" if state.query else ""
    return marked + search
