"""The page: the views, the list, the hold beside it or in its place, a line to type in, and a message."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Static

from holdfast.cli.inbox.hold_list import HoldList, empty_text
from holdfast.cli.inbox.hold_pane import HoldPane
from holdfast.cli.inbox.prompt_line import PromptLine
from holdfast.cli.inbox.state import VIEWS, InboxState
from holdfast.cli.output.screen import clean_text, one_line


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
