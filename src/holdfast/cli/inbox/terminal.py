"""The terminal: keys one by one, a screen of its own, and everything as it was when we leave."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from holdfast.cli.inbox.screen import ScreenFrame
from holdfast.cli.inbox.text_spans import painted
from holdfast.cli.output.screen import is_plain

_PLAIN: Final = str.maketrans({"│": "|", "┃": "#", "─": "-", "…": "~", "·": "-"})
ESCAPE_WAIT: Final = 0.05
"""Seconds after which an escape byte is the key itself, and not the beginning of another."""
_ENTER = "\x1b[?1049h\x1b[?2004h\x1b[2J"
_LEAVE = "\x1b[?2004l\x1b[?25h\x1b[0m\x1b[?1049l"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])")
_PASTE = re.compile(rb"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
_NAMED: Final = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1b[C": "right", b"\x1b[D": "left", b"\x1bOA": "up",
    b"\x1bOB": "down", b"\x1bOC": "right", b"\x1bOD": "left", b"\x1b[H": "home", b"\x1b[F": "end",
    b"\x1b[1~": "home", b"\x1b[4~": "end", b"\x1b[5~": "pageup", b"\x1b[6~": "pagedown",
}  # fmt: skip
_CONTROL: Final = {
    "\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace", "\x03": "ctrl-c",
    "\x04": "ctrl-c", "\x15": "ctrl-u", "\x17": "ctrl-w", "\t": "tab", " ": "space",
}  # fmt: skip


def decode(data: bytes, *, last: bool = False) -> tuple[list[str], bytes]:
    """Keys, and the bytes of one that is not complete. `last`: nothing follows for now."""
    keys: list[str] = []
    while data:
        key, used = _first(data, last)
        if not used:
            break
        keys += [key] if key else []
        data = data[used:]
    return keys, data


def _first(data: bytes, last: bool) -> tuple[str, int]:
    """(key, bytes that it takes); 0: more is needed. A key without a name is dropped."""
    if data[:1] == b"\x1b":
        return _escape(data, last)
    for size in range(1, 5):
        try:
            text = data[:size].decode()
        except UnicodeDecodeError:
            if size >= len(data) and not last:
                return "", 0
            continue
        key = _CONTROL.get(text, text)
        return (key, size) if len(key) > 1 or key.isprintable() else ("", size)
    return "", 1


def _escape(data: bytes, last: bool) -> tuple[str, int]:
    pasted = _PASTE.match(data)
    if pasted is not None:
        text = " ".join(pasted.group(1).decode(errors="replace").split())
        return f"paste:{text}", pasted.end()
    if data.startswith(b"\x1b[200~"):
        return "", 0
    found = _SEQUENCE.match(data)
    if found is not None:
        return _NAMED.get(found.group(), ""), found.end()
    if len(data) == 1 or (not last and len(data) < 8 and data[1:2] in (b"[", b"O")):
        return ("esc", 1) if last else ("", 0)
    return "esc", 1


class Terminal:
    """Calls `hear` with each key, and with `resize`. Whatever ends the program, the screen is given back."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self._hear = hear
        self._in, self._out = sys.stdin.fileno(), sys.stdout
        self._loop = asyncio.get_running_loop()
        self._before: list[Any] = []
        self._rest = b""
        self._waiting: asyncio.TimerHandle | None = None
        self._shown: list[str] = []
        self._colour = not os.environ.get("NO_COLOR")
        self._plain = is_plain()

    def __enter__(self) -> Terminal:
        self._before = termios.tcgetattr(self._in)
        tty.setraw(self._in, termios.TCSADRAIN)
        self._write(_ENTER)
        self._loop.add_reader(self._in, self._read)
        for number, key in (
            (signal.SIGWINCH, "resize"),
            (signal.SIGTERM, "ctrl-c"),
            (signal.SIGHUP, "ctrl-c"),
        ):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.add_signal_handler(number, self._hear, key)
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._loop.remove_reader(self._in)
        for number in (signal.SIGWINCH, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.remove_signal_handler(number)
        with contextlib.suppress(OSError):
            self._write(_LEAVE)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._in, termios.TCSADRAIN, self._before)

    @property
    def size(self) -> tuple[int, int]:
        """(columns, lines)"""
        try:
            found = os.get_terminal_size(self._out.fileno())
        except OSError:
            return 80, 24
        return max(found.columns, 20), max(found.lines, 8)

    def forget(self) -> None:
        """The next frame is painted whole."""
        self._shown = []
        self._write("\x1b[2J")

    def show(self, page: ScreenFrame) -> None:
        """Only the lines that differ from what is there."""
        fresh = [painted(line, colour=self._colour) for line in page.lines]
        parts = ["\x1b[?25l"]
        for i, line in enumerate(fresh):
            if i >= len(self._shown) or self._shown[i] != line:
                parts.append(f"\x1b[{i + 1};1H{line}\x1b[K")
        parts += [f"\x1b[{i + 1};1H\x1b[K" for i in range(len(fresh), len(self._shown))]
        if page.cursor is not None:
            parts.append(f"\x1b[{page.cursor[0] + 1};{page.cursor[1] + 1}H\x1b[?25h")
        self._shown = fresh
        self._write("".join(parts))

    def _write(self, text: str) -> None:
        known = self._out.encoding or "utf-8"
        shown = text if not self._plain else text.translate(_PLAIN)
        self._out.write(shown.encode(known, "replace").decode(known))
        self._out.flush()

    def _read(self) -> None:
        try:
            data = os.read(self._in, 4096)
        except OSError:
            data = b""
        if not data:
            self._hear("ctrl-c")  # the terminal is gone
            return
        if self._waiting is not None:
            self._waiting.cancel()
        keys, self._rest = decode(self._rest + data)
        for key in keys:
            self._hear(key)
        if self._rest:
            self._waiting = self._loop.call_later(ESCAPE_WAIT, self._flush)

    def _flush(self) -> None:
        keys, self._rest = decode(self._rest, last=True)
        for key in keys:
            self._hear(key)
