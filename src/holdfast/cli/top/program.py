"""`top`: looks again and again, until somebody leaves."""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from holdfast.cli.inbox.terminal import Terminal
from holdfast.cli.inbox.text_spans import plain
from holdfast.cli.main import Exit
from holdfast.cli.options.store import open_store_for_command
from holdfast.cli.output.screen import print_json, print_raw, width
from holdfast.cli.top.figures import FleetSnapshot, as_json, take_snapshot
from holdfast.cli.top.screen import frame, lines
from holdfast.errors import HoldfastError
from holdfast.store.protocols import Store

_LEAVE: Final = frozenset({"q", "ctrl-c", "esc"})
_LOOKED: Final = "looked"


async def top(*, store: str | None, every: float, once: bool, json: bool) -> Exit:
    """Where nobody looks at a terminal it is shown once."""
    async with open_store_for_command(store, must_exist=True) as hf:
        opened = await hf.open()
        seen = await take_snapshot(opened)
        if json:
            print_json(as_json(seen))
        elif once or not (sys.stdin.isatty() and sys.stdout.isatty()):
            for line in lines(seen, width()):
                print_raw(plain(line).rstrip())
        else:
            await Top(opened, seen, every).live()
    return Exit.ok


class Top:
    """Keys and looks, one after another. A store that does not answer leaves what was seen last."""

    def __init__(self, store: Store, seen: FleetSnapshot, every: float) -> None:
        self._store = store
        self._every = every
        self._seen = seen
        self._said = ""
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def live(self) -> None:
        looking = asyncio.ensure_future(self._look())
        try:
            with Terminal(self._heard.put_nowait) as terminal:
                key = ""
                while key not in _LEAVE:
                    if key == "resize":
                        terminal.forget()
                    terminal.show(frame(self._seen, *terminal.size, self._said))
                    key = await self._heard.get()
        finally:
            looking.cancel()
            (ended,) = await asyncio.gather(looking, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _look(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._every)
                await self._refresh_once()
                self._heard.put_nowait(_LOOKED)
        except Exception:
            self._heard.put_nowait(
                "q"
            )  # nothing more would be seen: it is told when the screen is given back
            raise

    async def _refresh_once(self) -> None:
        try:
            self._seen, self._said = await take_snapshot(self._store), ""
        except HoldfastError as error:
            self._said = f"Not up to date: {error.message}"
