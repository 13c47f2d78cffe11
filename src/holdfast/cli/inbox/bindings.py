"""The keys of the inbox, and the page that lists them.

`tooltip` is the line in the help; what has none is another key for the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.table import Table
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from holdfast.cli.inbox.state import VIEWS

DIGITS: Final = "123456789"


def _bind(
    keys: str, action: str, description: str = "", text: str = "", *, shown_as: str | None = None
) -> Binding:
    # With priority, keys act in the order in which they are pressed: others go by way of the widgets.
    return Binding(
        keys, action, description, show=bool(description), key_display=shown_as, priority=True, tooltip=text
    )


_VIEW_LINE: Final = "views: " + ", ".join(f"{key} {name}" for key, name in VIEWS.items())

BINDINGS: Final[list[Binding]] = [
    _bind("?", "help", "help", "this page"),
    _bind("q", "quit_or_back", "quit", "quit (also Ctrl-C)"),
    _bind("j,down", "move(1)", "move", "down, up (in an open hold: scroll)", shown_as="j k"),
    _bind("k,up", "move(-1)"),
    _bind("enter", "enter", "open", "open (also o)", shown_as="Enter"),
    _bind("o,right", "open"),
    _bind("u,left,escape", "back", "back", "back (also Esc)", shown_as="u"),
    _bind("1", "choose(1)", "decide", "choose a decision; Enter then makes it", shown_as="1-9"),
    *(_bind(digit, f"choose({digit})") for digit in DIGITS[1:]),
    _bind("z", "undo", text="undo the last decision"),
    _bind("]", "step(1)", text="next, previous hold", shown_as="] ["),
    _bind("[", "step(-1)"),
    _bind("pagedown", "move(10)"),
    _bind("pageup", "move(-10)"),
    _bind("home", "move(-1000000)"),
    _bind("end,G", "move(1000000)"),
    _bind("/", "ask('search')", "search", "search: words flow:refund priority>=high due<2d tag:vat"),
    _bind("x", "select", "select", "select", shown_as="x"),
    _bind("J", "select_move(1)", text="select while moving", shown_as="J K"),
    _bind("K", "select_move(-1)"),
    _bind("g", "views", "views", _VIEW_LINE, shown_as="g"),
    _bind("c", "ask('comment')", "comment", "comment"),
    _bind("b", "ask('ask_back')", text="ask a question first (pauses the deadline)"),
    _bind("y", "ask('reply')", text="reply to a question"),
    _bind("r", "ask('reassign')", "reassign", "reassign"),
    _bind("m", "do('claim')", "claim", "claim or release"),
    _bind("s", "ask('snooze')", text="snooze"),
    _bind("w", "do('watch')", text="watch"),
    _bind("e", "expand", "all", "the whole context and the history"),
    _bind("n,R", "reload", text="show what is new", shown_as="n R"),
    _bind("ctrl+c,ctrl+d,ctrl+q", "leave"),
    # After `g` these keys name views; `check_action` says which of two bindings counts.
    *(_bind(key, f"view({name!r})", name) for key, name in VIEWS.items()),
]


_SCROLL = {"j": 1, "down": 1, "k": -1, "up": -1}


class HelpScreen(ModalScreen[None]):
    """j and k scroll; any other key closes it."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        super().__init__()
        self._bindings_shown = [binding for binding in bindings if binding.tooltip]

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help", can_focus=False) as page:
            page.border_title = "Keys"
            page.border_subtitle = "any other key: back"
            yield Static(self._table())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(style="bold", no_wrap=True)
        table.add_column()
        for binding in self._bindings_shown:
            table.add_row(binding.key_display or binding.key, binding.tooltip)
        table.add_row("", "")
        table.add_row("", "A decision always takes two keys.", style="dim")
        return table

    def on_key(self, event: events.Key) -> None:
        event.stop()
        if event.key in _SCROLL:
            self.query_one("#help").scroll_relative(y=_SCROLL[event.key], animate=False)
        elif self.is_current:
            self.dismiss()
