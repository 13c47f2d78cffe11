"""`inbox`: keys, the passing of time and what others do, one after another, until somebody leaves."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator
from typing import Final

import msgspec

from holdfast.cli.commands.holds.list import list_holds
from holdfast.cli.hold_session import ActorOptions, HoldListOptions, HoldSession, open_hold_session
from holdfast.cli.inbox.decide import MOVED
from holdfast.cli.inbox.keys import press
from holdfast.cli.inbox.screen import SPLIT, frame
from holdfast.cli.inbox.service_calls import Actions
from holdfast.cli.inbox.state import InboxState, with_message
from holdfast.cli.inbox.terminal import Terminal
from holdfast.cli.main import Exit
from holdfast.cli.output.screen import is_plain, print_line, print_note
from holdfast.errors import HoldfastError, InputError, StoreError
from holdfast.types.clock import MICROS
from holdfast.types.hold import HoldRow

LIVE: Final = 2.0
"""Seconds after which others may have written something that nobody told us about."""
CALM: Final = 0.25
"""Seconds between two looks at a store in which much happens."""
TICK: Final = 1.0
DECIDING: Final = frozenset({"enter", *"123456789"})
_CHANGED: Final = "changed"
_TICKED: Final = "ticked"

_replace = msgspec.structs.replace


async def open_inbox(seat: ActorOptions, *, view: str | None, query: str) -> Exit:
    """Raises InputError where there is no terminal to live in."""
    shown = view or ("all" if seat.as_ is None else "mine")
    if seat.json:
        return await list_holds(HoldListOptions(query=query, view=shown, limit=200), seat)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError(
            "the inbox needs a terminal to live in.", hint="`holdfast holds list` prints what waits."
        )
    async with open_hold_session(seat, channel="inbox") as desk:
        state = InboxState(me=desk.actor.id, view=shown, query=query, now=desk.now)
        inbox = InboxProgram(desk, await Actions(desk).reader.load(state))
        with Terminal(inbox.hear) as terminal:
            await inbox.live(terminal)
        await _leave(desk, inbox.state)
    return Exit.ok


class InboxProgram:
    """One thing after another: a key is never pressed on what is not shown yet."""

    def __init__(self, desk: HoldSession, state: InboxState) -> None:
        self.state = state
        self._desk = desk
        self._actions = Actions(desk)
        self._plain = is_plain()
        self._heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self._seen = ""
        self._behind = False

    def hear(self, key: str) -> None:
        """With the hold that was in sight when the key was pressed."""
        self._heard.put_nowait((key, self._seen))

    async def live(self, terminal: Terminal) -> None:
        async with self._listening():
            self._show(terminal)
            while not self.state.over:
                heard, seen = await self._heard.get()
                if heard == "resize":
                    terminal.forget()
                await self.take(heard, seen)
                self._show(terminal)

    def _show(self, terminal: Terminal) -> None:
        width, height = terminal.size
        self.state = _replace(self.state, split=width >= SPLIT)
        terminal.show(frame(self.state, width, height, ascii_only=self._plain))
        self._seen = self._current()

    def _current(self) -> str:
        row = self.state.current
        return "" if row is None else row.id

    async def take(self, heard: str, seen: str | None = None) -> None:
        """`seen`: what was in sight. A decision that was meant for another hold is not made on this one."""
        self.state = _replace(self.state, now=self._desk.now)
        if heard in DECIDING and self.state.prompt is None and seen not in (None, self._current()):
            self.state = with_message(_replace(self.state, armed=None, sure=()), MOVED, alert=True)
            return
        if heard == _CHANGED:
            await self._refresh()
        elif heard == _TICKED:
            if self._is_due():
                await self._refresh()
        elif heard != "resize":
            self.state, act = press(self.state, heard)
            if act is not None:
                self.state = await self._actions.perform(self.state, act)

    def _is_due(self) -> bool:
        """A placed decision is made by whoever looks next."""
        return any(row.placed_until and row.placed_until <= self.state.now for row in self.state.rows)

    async def _refresh(self) -> None:
        """Figures too. A store that does not answer is tried again."""
        try:
            fresh = await self._actions.reader.refresh(self.state)
            fresh = await self._actions.reader.count(fresh)
        except HoldfastError as error:
            self._behind = True
            self.state = with_message(self.state, f"Not up to date: {error.message}", alert=True)
            return
        self.state = with_message(fresh, "") if self._behind else fresh
        self._behind = False

    @contextlib.asynccontextmanager
    async def _listening(self) -> AsyncGenerator[None]:
        work = [asyncio.ensure_future(self._changes()), asyncio.ensure_future(self._ticks())]
        try:
            yield
        finally:
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _changes(self) -> None:
        while True:
            # A store that cannot be asked says so when the list is read.
            with contextlib.suppress(StoreError):
                await self._desk.holds.store.wait_change(LIVE)
            if self._heard.empty():
                self.hear(_CHANGED)
            await asyncio.sleep(CALM)

    async def _ticks(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self._heard.empty():
                self.hear(_TICKED)


async def _leave(desk: HoldSession, state: InboxState) -> None:
    """What can still be taken back is waited for: whoever leaves has made up their mind."""
    left = [row.placed_until - desk.now for row in await _placed(desk, state) if row.placed_until is not None]
    if left and max(left) > 0:
        what = "1 decision stands" if len(left) == 1 else f"{len(left)} decisions stand"
        print_note(f"{what} in {max(left) / MICROS:.0f} s; Ctrl-C leaves that to whoever looks next.")
        await asyncio.sleep(max(left) / MICROS)
    await _placed(desk, state)
    if state.decided:
        print_line(
            f"{state.decided} decided. Their runs go on where a worker has them, or by `holdfast resume RUN`."
        )


async def _placed(desk: HoldSession, state: InboxState) -> list[HoldRow]:
    """As they are now: a look makes those whose time is over."""
    found: list[HoldRow] = []
    for hold in state.placed:
        with contextlib.suppress(HoldfastError):
            found.append(await desk.holds.get(desk.actor, hold))
    return found
