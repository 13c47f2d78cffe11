"""The inbox in a terminal of its own: keys as bytes, and a screen that is restored."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from tests.cli.conftest import Cli
from tests.deadlines import HANG

pytestmark = pytest.mark.covers("HOLD-HAND-01")
PARTS = re.compile(r"\x1b\[([0-9;?=<>]*[a-zA-Z])|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()=>].?|([\s\S])")
UNFINISHED = re.compile(r"\x1b(?:\[[0-9;?=<>]*)?$")
MODES = ("?1049", "?25", "?7", "?1000", "?1003", "?1006", "?1004", "?2004")
BROKEN = """
from holdfast.cli.inbox import navigate

def select(state):
    raise RuntimeError("the list is broken")

navigate.select = select
"""


class Terminal:
    def __init__(self, folder: Path, columns: int, **env: str) -> None:
        self.ours, theirs = pty.openpty()
        self._resize(theirs, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        given = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "CI")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "inbox", "--as", "user:dana@acme"],
            cwd=folder,
            env=given | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | env,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        self.raw = ""

    def _resize(self, fd: int, columns: int) -> None:
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def resize(self, columns: int) -> None:
        self._resize(self.theirs, columns)
        self.process.send_signal(signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def until(self, *words: str) -> str:
        """Reads until the screen has all of these."""
        return self._read(lambda screen: all(word in screen for word in words), f"{words} not in")

    def until_raw(self, code: str) -> None:
        self._read(lambda _: code in self.raw, f"{code!r} not in")

    def until_not(self, word: str) -> str:
        return self._read(lambda screen: word not in screen, f"{word} in")

    def _read(self, done: Callable[[str], bool], problem: str) -> str:
        ends = time.monotonic() + HANG
        while not done(self.screen):
            assert time.monotonic() < ends, f"{problem}:\n{self.screen}"
            if select.select([self.ours], [], [], 0.2)[0]:
                self.raw += os.read(self.ours, 65536).decode(errors="replace")
        return self.screen

    @property
    def screen(self) -> str:
        """What is painted by now: as much of a terminal as textual needs."""
        lines: dict[int, dict[int, str]] = {}
        row = column = 0
        for code, char in PARTS.findall(UNFINISHED.sub("", self.raw)):
            if code.endswith("H"):
                row, column = (int(part or 1) - 1 for part in (code[:-1] or "1;1").split(";"))
            elif code == "2J":
                lines = {}
            elif char == "\r":
                column = 0
            elif char == "\n":
                row += 1
            elif char:
                lines.setdefault(row, {})[column] = char
                column += 1
        return "\n".join(
            "".join(lines[row].get(i, " ") for i in range(max(lines[row]) + 1)).rstrip()
            for row in sorted(lines)
        )

    def exit_code(self) -> int:
        """Reads until the program has ended: it waits until all that it wrote is read."""
        ends = time.monotonic() + HANG
        while self.process.poll() is None or select.select([self.ours], [], [], 0)[0]:
            assert time.monotonic() < ends, f"still runs:\n{self.screen}"
            if select.select([self.ours], [], [], 0.1)[0]:
                self.raw += os.read(self.ours, 65536).decode(errors="replace")
        return self.process.returncode

    def not_restored(self) -> list[str]:
        """Of the screen, cursor, wrapping, reports of mouse, focus and paste, keyboard, and settings."""
        on = {code: self.raw.rfind(f"\x1b[{code}h") for code in MODES}
        off = {code: self.raw.rfind(f"\x1b[{code}l") for code in MODES}
        found = [code for code in MODES if (on[code] > off[code]) != (code in ("?25", "?7"))]
        if self.raw.count("\x1b[<u") != len(re.findall(r"\x1b\[>[0-9]+u", self.raw)):
            found.append("keyboard")
        return found + (["settings"] if termios.tcgetattr(self.theirs) != self.before else [])

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)
        os.close(self.theirs)


async def _ask(folder: Path, amount: int) -> str:
    async with Holdfast(f"sqlite:{folder / '.holdfast' / 'holdfast.db'}") as hf:
        flow = Flow("refund", effect="pure")
        flow.hold("approve", prompt=f"Refund {amount}?", options=["approve", "reject"], undo=0,
                  assignee="user:dana@acme")  # fmt: skip
        result = await flow.run({}, on=hf)
        return result.holds[0].id


@pytest.fixture
def terminal(cli: Cli, tmp_path: Path) -> Iterator[Terminal]:
    asyncio.run(_ask(tmp_path, 250))
    opened = Terminal(tmp_path, 100)
    yield opened
    opened.close()


def test_somebody_lives_in_it_decides_sees_others_and_leaves(
    terminal: Terminal, cli: Cli, tmp_path: Path
) -> None:
    terminal.until("[mine 1]", "Refund 250?")
    hold = asyncio.run(_ask(tmp_path, 90))
    terminal.until("1 new: n shows them")
    terminal.type("n")
    terminal.until("[mine 2]", "Refund 90?")
    terminal.resize(40)
    terminal.until("? help q quit j k move Enter open")

    terminal.type("o1")
    terminal.until("Refund 250?", "[Approve: Enter]".replace(" ", "\N{NO-BREAK SPACE}"))
    terminal.type("\r")
    terminal.until("Decided 'approve': Refund 250?.")
    cli("holds", "resolve", hold, "reject", "--as", "user:sam@acme")
    terminal.until("Resolved by user:sam@acme")
    terminal.type("uq")

    assert terminal.exit_code() == 0
    assert terminal.not_restored() == []
    assert "1 decided." in terminal.raw.rpartition("\x1b[?1049l")[2]
    rows = json.loads(cli("holds", "list", "status:any", "--json").out)["items"]
    assert {row["prompt"]: row["resolved_by"] for row in rows} == {
        "Refund 250?": "user:dana@acme",
        "Refund 90?": "user:sam@acme",
    }


def test_ctrl_c_gives_the_screen_back(terminal: Terminal) -> None:
    terminal.until("Refund 250?")
    terminal.type("o2\x03")

    assert terminal.exit_code() == 0
    assert terminal.not_restored() == []


def test_keys_are_read_as_a_terminal_sends_them(terminal: Terminal, cli: Cli) -> None:
    """Arrows, letters of several bytes, a paste of two lines, and Escape alone."""
    terminal.until("Refund 250?")
    terminal.type("\x1b[C")
    terminal.until("1\N{NO-BREAK SPACE}Approve")
    terminal.type("c")
    terminal.until("visible to all")
    terminal.type("é!\x1b[200~two\nlines\x1b[201~")
    terminal.until("é!two lines")
    terminal.type("\x7f")
    terminal.until_not("lines")
    terminal.type("\r")
    terminal.until("Comment added.")
    terminal.until_not("visible to all")
    terminal.type("c")
    terminal.until("visible to all")
    terminal.type("no\x1b")
    terminal.until_not("visible to all")
    terminal.type("qq")

    assert terminal.exit_code() == 0
    (hold,) = cli("holds", "list", "--json").items
    shown = cli("holds", "show", hold["id"], "--json").json
    assert [note["text"] for note in shown["comments"]] == ["é!two line"]


def test_escape_is_a_key_where_another_key_follows_at_once(terminal: Terminal, cli: Cli) -> None:
    """The bytes are those of Alt and that key."""
    terminal.until("Refund 250?")
    terminal.type("o")
    terminal.until("1\N{NO-BREAK SPACE}Approve")
    terminal.type("1")
    terminal.until("Approve? Enter decides")
    terminal.type("\x1b\r")
    terminal.until_not("Approve? Enter decides")
    terminal.type("c")
    terminal.until("visible to all")
    terminal.type("no\x1bqq")

    assert terminal.exit_code() == 0
    (hold,) = cli("holds", "list", "--json").items
    shown = cli("holds", "show", hold["id"], "--json").json
    assert (shown["status"], shown["comments"]) == ("pending", [])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_screen(terminal: Terminal, number: signal.Signals) -> None:
    terminal.until("Refund 250?")
    terminal.process.send_signal(number)

    assert terminal.exit_code() == 0
    assert terminal.not_restored() == []


def test_a_signal_during_the_start_restores_the_screen(terminal: Terminal) -> None:
    terminal.until_raw("\x1b[?1049h")
    terminal.process.send_signal(signal.SIGTERM)

    assert terminal.exit_code() == 0
    assert terminal.not_restored() == []


def test_an_error_restores_the_screen_and_is_shown(cli: Cli, tmp_path: Path) -> None:
    asyncio.run(_ask(tmp_path, 250))
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    opened = Terminal(tmp_path, 80, PYTHONPATH=str(tmp_path))
    try:
        opened.until("Refund 250?")
        opened.type("x")
        assert opened.exit_code() == 5
        assert opened.not_restored() == []
        assert "the list is broken" in opened.raw.rpartition("\x1b[?1049l")[2]
    finally:
        opened.close()


def test_a_terminal_of_ascii_gets_ascii(cli: Cli, tmp_path: Path) -> None:
    asyncio.run(_ask(tmp_path, 250))
    opened = Terminal(tmp_path, 120, PYTHONIOENCODING="ascii")
    try:
        opened.until("Refund 250?", "1 Approve")
        assert opened.screen.isascii()
    finally:
        opened.close()


def test_without_a_terminal_a_sentence_says_so(cli: Cli, tmp_path: Path) -> None:
    asyncio.run(_ask(tmp_path, 250))

    said = cli("inbox")

    assert (said.code, said.out) == (2, "")
    assert "holdfast holds list" in said.err
    assert len(cli("inbox", "--json").items) == 1
