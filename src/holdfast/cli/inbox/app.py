"""The inbox in the terminal: keys, what others do, and the clock, one after another.

All of it is handled in the app's own queue of messages. `state.py` has what is shown; the widgets show it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import signal
import sys
import time
from typing import ClassVar, Final

import msgspec
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.driver import Driver
from textual.filter import LineFilter
from textual.widgets import Footer, OptionList

from holdfast.cli.hold_session import HoldSession
from holdfast.cli.inbox import navigate
from holdfast.cli.inbox.bindings import BINDINGS, DIGITS, HelpScreen
from holdfast.cli.inbox.decide import MOVED, arm, begin, save_draft, submit_line, typed_so_far
from holdfast.cli.inbox.inbox_view import AsciiFilter, ControlFilter, InboxView
from holdfast.cli.inbox.service_calls import Actions
from holdfast.cli.inbox.state import VIEWS, Act, InboxState, Prompt, Step, with_message
from holdfast.errors import HoldfastError, StoreError

SPLIT: Final = 110
"""Columns from which the list and the hold are both visible."""
LIVE: Final = 2.0
"""Seconds after which others may have written something without a notice."""
CALM: Final = 0.25
"""Seconds between two looks at a store in which much happens."""
TICK: Final = 1.0
_DECIDING: Final = frozenset({"enter", *DIGITS})
_ACTING: Final = frozenset("xJKcbyrmswe")
"""Keys that concern the current hold without deciding it."""
_END_A_PROMPT: Final = ("enter", "escape")
_FILLS: Final = ("field", "why", "answer")
_PROMPTS: Final = {
    "search": ("Search", "", "words, flow: priority>=high due<2d assignee:me tag: has:comment"),
    "comment": ("Comment", "", "visible to all who see this hold"),
    "reassign": ("Reassign to", "", "user:NAME, group:KEY or role:KEY"),
    "snooze": ("Snooze for", "4h", "4h, 2d, or 2030-01-31T09:00"),
    "ask_back": ("Question", "", "to the person who started the run; the deadline is paused until the reply"),
    "reply": ("Reply", "", "to the question about this hold"),
}

_replace = msgspec.structs.replace


class InboxApp(App[None]):
    TITLE = "Holdfast inbox"
    CSS_PATH = "inbox.tcss"
    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [*BINDINGS]

    def __init__(
        self, session: HoldSession, state: InboxState, *, plain: bool = False, live: bool = True
    ) -> None:
        """`live`: what others do is noticed, and the clock goes on, without a key."""
        super().__init__()
        self.state = state
        self._session = session
        self._actions = Actions(session)
        self._plain = plain
        self._live = live
        self._ascii = AsciiFilter()
        self._behind = False
        self._queued = False
        self._visible: str | None = None
        # Of the hold that the keys mean: a decision that was pressed before was meant for another one.
        self._visible_since = math.inf
        self._moved_by_others = False
        self._prompt_ends = False
        self._input_waiting: list[events.Key | events.Paste] = []
        self._footer_of: tuple[object, ...] = ()

    # ------------------------------------------------------------------ the screen
    def compose(self) -> ComposeResult:
        yield InboxView()
        yield Footer(compact=True, show_command_palette=False)

    def get_driver_class(self) -> type[Driver]:
        if sys.platform == "win32":
            return super().get_driver_class()
        from holdfast.cli.inbox.keyboard import InboxDriver

        return InboxDriver

    def get_line_filters(self) -> list[LineFilter]:
        return [*super().get_line_filters(), ControlFilter(), *([self._ascii] if self._plain else [])]

    def on_load(self) -> None:
        # Before the terminal is changed: from then on a signal has to restore it.
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(number, self.call_later, self.action_leave)

    def on_mount(self) -> None:
        if self._live:
            self.run_worker(self._wait_for_changes())
            self.set_interval(TICK, self._on_tick)
        self.show()

    def on_unmount(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().remove_signal_handler(number)

    def on_resize(self) -> None:
        # Cards and context depend on the widths, which follow the new size of the terminal.
        self.show()
        self.call_after_refresh(self.show)

    def show(self) -> None:
        """The widgets as the state says. The clock goes on, so this is done each second."""
        if not self.is_running or not self.screen_stack[0].is_mounted:
            return
        self.state = _replace(self.state, split=self.size.width >= SPLIT)
        self._view.show(self.state, plain=self._plain)
        self._note_visible()
        self._show_keys()

    @property
    def _view(self) -> InboxView:
        return self.screen_stack[0].query_one(InboxView)

    def _note_visible(self) -> None:
        current = self.state.current_id
        if current != self._visible:
            self._visible, self._visible_since = current, math.inf
            self.call_after_refresh(self._is_visible_now, current)

    def _is_visible_now(self, hold: str) -> None:
        if hold == self._visible:
            self._visible_since = time.monotonic()

    @property
    def is_painted(self) -> bool:
        return self._visible_since < math.inf

    def _show_keys(self) -> None:
        """The footer is made anew only when other keys have a meaning."""
        state = self.state
        keys = (state.open, state.choosing_view, state.prompt is None, self._can_go_back, bool(state.rows))
        if keys != self._footer_of:
            self._footer_of = keys
            self.refresh_bindings()

    # ------------------------------------------------------------------ keys
    @property
    def _can_go_back(self) -> bool:
        state = self.state
        return bool(state.open or state.selected or state.query)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Which keys have a meaning now; the footer shows those."""
        if action == "leave":
            return True
        if len(self.screen_stack) > 1:
            return False
        if self.state.prompt is not None:
            return action == "cancel"
        if self.state.choosing_view or action == "view":
            return self.state.choosing_view and action == "view"
        if action == "back":
            return self._can_go_back
        return action != "cancel"

    async def on_event(self, event: events.Event) -> None:
        """Before a key has its meaning: is it a key at all, and was it meant for what is visible?"""
        if not isinstance(event, events.Key | events.Paste):
            await super().on_event(event)
        elif event.is_forwarded:
            await self._on_input_from_widget(event)
        elif self._prompt_ends:
            self._input_waiting.append(event)
        elif isinstance(event, events.Paste):
            event.text = " ".join(event.text.split())
            self._disarm()
            await super().on_event(event)
        else:
            await self._on_key_from_terminal(event)

    async def _on_key_from_terminal(self, event: events.Key) -> None:
        # These go by way of the line, behind what is typed in it; what is typed after them waits for them.
        self._prompt_ends = self.state.prompt is not None and event.key in _END_A_PROMPT
        before = self.state = _replace(self.state, now=self._session.now)
        if self._is_key(event):
            await super().on_event(event)
        if self.state.current_id != before.current_id:
            self._moved_by_others = False
        if self.state is not before:
            self.show()

    async def _on_input_from_widget(self, event: events.Key | events.Paste) -> None:
        """After Enter and Escape come back from the line, the keys after them are handled.

        Also where the line was closed meanwhile, because another person decided the hold."""
        if not self._prompt_ends or not isinstance(event, events.Key) or event.key not in _END_A_PROMPT:
            await super().on_event(event)
            return
        if self.state.prompt is not None:
            await (self.action_cancel() if event.key == "escape" else self._submit())
        self.show()
        self._prompt_ends = False
        waiting, self._input_waiting = self._input_waiting, []
        for each in waiting:
            await self.on_event(each)

    def _is_key(self, event: events.Key) -> bool:
        state = self.state
        if event.key == "ctrl+c" or state.prompt is not None or len(self.screen_stack) > 1:
            return True
        if state.cut_off:
            self.state = _replace(state, cut_off=event.key not in ("enter", "escape"))
            return False
        if state.choosing_view and (event.character or "") not in VIEWS:
            keys = ", ".join(f"{key} {name}" for key, name in VIEWS.items())
            self.state = with_message(_replace(state, choosing_view=False), f"After g: {keys}")
            return False
        # After a move of one's own, keys that decide nothing mean the hold that was moved to.
        meant = _DECIDING | _ACTING if self._moved_by_others else _DECIDING
        if event.key in meant and event.time < self._visible_since:
            self._disarm()
            self.state = with_message(self.state, MOVED, alert=True)
            return False
        if event.key != "enter" or (state.armed is None and not state.sure):
            self._disarm()
        return True

    def _disarm(self) -> None:
        """Any key but Enter cancels what the key before has chosen."""
        if self.state.prompt is None:
            self.state = _replace(self.state, armed=None, sure=(), message="", alert=False)

    async def _take(self, step: Step) -> None:
        self.state, act = step
        if act is not None:
            self.state = await self._actions.perform(self.state, act)

    async def action_move(self, by: int) -> None:
        if self.state.open:
            self._view.hold.pages.scroll_relative(y=by, animate=False)
        else:
            await self.action_step(by)

    async def action_step(self, by: int) -> None:
        """The next or the one before, open or not."""
        await self._take(navigate.move_to(self.state, self.state.at + by))

    async def action_select_move(self, by: int) -> None:
        await self._take(navigate.move_to(self.state, self.state.at + by, selecting=True))

    def action_select(self) -> None:
        self.state = navigate.select(self.state)

    async def action_open(self) -> None:
        await self._take(navigate.open_hold(self.state))

    async def action_enter(self) -> None:
        """Makes the decision that is chosen; else it opens."""
        state = self.state
        if state.sure:
            act = Act(do="bulk", holds=state.sure, decision=state.armed or "", sure=True)
            await self._take((_replace(state, sure=(), armed=None), act))
        elif state.armed is not None:
            await self._take(begin(state))
        else:
            await self.action_open()

    async def action_choose(self, digit: int) -> None:
        """A hold that is not visible is opened first: people decide what they have read."""
        state = self.state
        if state.open or state.split or state.selected or state.current is None:
            self.state = arm(state, digit)
            return
        await self.action_open()
        self.state = with_message(self.state, f"Read it; then {digit} again.")

    async def action_back(self) -> None:
        await self._take(navigate.back(self.state))

    async def action_cancel(self) -> None:
        """From a form the input is kept; from another line it is not."""
        self._read_prompt()
        filling = typed_so_far(self.state)
        state = _replace(self.state, prompt=None, filling=None)
        if filling is None:
            self.state = state
        else:
            kept = with_message(state, "Nothing is decided. Your input is kept as a draft.")
            await self._take((kept, save_draft(filling)))

    async def action_expand(self) -> None:
        await self._take(navigate.expand(self.state))

    async def action_do(self, what: str) -> None:
        await self._take(navigate.do(self.state, what))

    async def action_undo(self) -> None:
        await self._take(navigate.undo(self.state))

    async def action_reload(self) -> None:
        await self._take((self.state, Act(do="load")))

    def action_ask(self, kind: str) -> None:
        label, text, hint = _PROMPTS[kind]
        given = self.state.query if kind == "search" else text
        self.state = navigate.ask(self.state, kind, label, text=given, hint=hint)

    def action_views(self) -> None:
        self.state = _replace(self.state, choosing_view=True)

    async def action_view(self, view: str) -> None:
        await self._take((_replace(self.state, choosing_view=False), Act(do="load", view=view)))

    async def action_help(self) -> None:
        await self.push_screen(HelpScreen(BINDINGS))

    async def action_quit_or_back(self) -> None:
        if self.state.open:
            await self.action_back()
        else:
            self.exit()

    async def action_leave(self) -> None:
        """Quitting in the middle of a form loses nothing."""
        self._read_prompt()
        filling = typed_so_far(self.state)
        if filling is not None:
            await self._take((self.state, save_draft(filling)))
        self.exit()

    # ------------------------------------------------------------------ text and mouse
    def _read_prompt(self) -> None:
        if self.state.prompt is not None:
            text = self._view.prompt.typed.value
            self.state = _replace(self.state, prompt=_replace(self.state.prompt, text=text, error=""))

    async def _submit(self) -> None:
        self._read_prompt()
        if self.state.prompt is not None:
            await self._take(self._submitted(self.state.prompt))

    def _submitted(self, prompt: Prompt) -> Step:
        if prompt.kind in _FILLS:
            return submit_line(self.state, prompt)
        text, done = prompt.text.strip(), _replace(self.state, prompt=None)
        if prompt.kind == "search":
            return done, Act(do="load", query=text)
        return done, Act(do=prompt.kind, holds=prompt.holds, text=text) if text else None

    async def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """A click on a hold opens it."""
        if self.state.prompt is None and not self.state.cut_off:
            self._disarm()
            await self._take(navigate.move_to(self.state, event.option_index))
            await self.action_open()
            self.show()

    # ------------------------------------------------------------------ time and others
    async def _wait_for_changes(self) -> None:
        while True:
            # A store that cannot be asked says so when the list is read.
            with contextlib.suppress(StoreError):
                await self._session.holds.store.wait_change(LIVE)
            if not self._queued:
                self._queued = self.call_later(self.refresh_holds)
            await asyncio.sleep(CALM)

    async def _on_tick(self) -> None:
        """Countdowns. A placed decision is made by the next reader."""
        self.state = _replace(self.state, now=self._session.now)
        if any(row.placed_until and row.placed_until <= self.state.now for row in self.state.rows):
            await self.refresh_holds()
        else:
            self.show()

    async def refresh_holds(self) -> None:
        """What others did. A store that does not answer is tried again."""
        self._queued = False
        self._read_prompt()
        before = self.state.current_id
        try:
            fresh = await self._actions.reader.refresh(_replace(self.state, now=self._session.now))
            fresh = await self._actions.reader.count(fresh)
        except HoldfastError as error:
            self._behind = True
            self.state = with_message(self.state, f"Not up to date: {error.message}", alert=True)
        else:
            self.state = with_message(fresh, "") if self._behind else fresh
            self._behind = False
        self._moved_by_others = self._moved_by_others or self.state.current_id != before
        self.show()
