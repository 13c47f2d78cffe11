"""All keys, over the inbox."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

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
