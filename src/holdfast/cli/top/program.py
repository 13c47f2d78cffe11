"""`top`: looks again and again, until the user quits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Generator
from typing import Final

from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.console import live_console, print_raw, width
from holdfast.cli.output.json_output import print_json
from holdfast.cli.top.figures import FleetSnapshot, as_json, take_snapshot
from holdfast.cli.top.screen import FleetView, lines
from holdfast.errors import HoldfastError
from holdfast.store.protocols import Store

RESIZED: Final = "resized"
QUIT: Final = frozenset({"q", "Q", "\x1b", "\x03", "\x04", ""})
"""Also Escape, Ctrl-C and Ctrl-D. The empty text: the terminal is gone."""


@contextlib.contextmanager
def terminal_keys(listener: Callable[[str], None]) -> Generator[None]:
    """Calls `listener` with each key, with RESIZED, and with a key of QUIT when the process shall end."""
    loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    mode = termios.tcgetattr(keyboard)
    # Ctrl-C is a key here: the screen is restored before the program ends.
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG)
    signals = {signal.SIGWINCH: RESIZED, signal.SIGTERM: "q", signal.SIGHUP: "q"}
    termios.tcsetattr(keyboard, termios.TCSADRAIN, mode)
    loop.add_reader(keyboard, lambda: listener(_read(keyboard)))
    for number, key in signals.items():
        loop.add_signal_handler(number, listener, key)
    try:
        yield
    finally:
        loop.remove_reader(keyboard)
        for number in signals:
            loop.remove_signal_handler(number)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _read(keyboard: int) -> str:
    try:
        return os.read(keyboard, 64).decode(errors="replace")
    except OSError:
        return ""


_UPDATED = "updated"


async def top(*, store: str | None, every: float, once: bool, json: bool) -> Exit:
    """Without a terminal it is shown once."""
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        seen = await take_snapshot(opened)
        if json:
            print_json(as_json(seen))
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            for line in lines(seen, width()):
                print_raw(line)
        else:
            await LiveTop(opened, seen, every).run()
    return Exit.ok


class LiveTop:
    """Keys and snapshots, one after another. If the store does not answer, the last snapshot stays."""

    def __init__(self, store: Store, seen: FleetSnapshot, every: float) -> None:
        self._store = store
        self._every = every
        self._view = FleetView(seen)
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    async def run(self) -> None:
        from rich.live import Live

        updates = asyncio.ensure_future(self._update())
        try:
            with (
                terminal_keys(self._queue.put_nowait),
                Live(self._view, console=live_console(), screen=True, auto_refresh=False) as live,
            ):
                while await self._queue.get() not in QUIT:
                    live.update(self._view, refresh=True)
        finally:
            updates.cancel()
            (ended,) = await asyncio.gather(updates, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _update(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._every)
                self._view = await self._next_view()
                self._queue.put_nowait(_UPDATED)
        except Exception:
            # There will be no more snapshots: the error is printed when the screen is restored.
            self._queue.put_nowait("q")
            raise

    async def _next_view(self) -> FleetView:
        try:
            return FleetView(await take_snapshot(self._store))
        except HoldfastError as error:
            return FleetView(self._view.seen, f"Not up to date: {error.message}")
