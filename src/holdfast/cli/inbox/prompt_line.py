"""The line in which something is typed: a search, a comment, a field of a form."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from holdfast.cli.inbox.state import InboxState
from holdfast.cli.output.screen import clean_text, one_line
from holdfast.model.template import as_text


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
            if self.typed.has_focus:
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
    text = " · ".join(f"{name} {one_line(as_text(value))}" for name, value in filling.values.items())
    return f"{one_line(filling.decision)}: {text}"
