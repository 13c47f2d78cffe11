"""Keys of a terminal one by one: rich draws a live view, but reads no keys."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable, Generator
from typing import Final

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
