"""The inbox in a terminal of its own: keys as bytes, a screen that is given back."""

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
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast
from holdfast.cli.inbox.terminal import decode
from tests.cli.conftest import Cli

pytestmark = pytest.mark.covers("HOLD-HAND-01")
MOVES = re.compile(r"\x1b\[(\d+);1H([^\x1b]*(?:\x1b\[[0-9;]*m[^\x1b]*)*)")
CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"jk", ["j", "k"]),
        (b"\r\x7f\x15 ", ["enter", "backspace", "ctrl-u", "space"]),
        (b"\x1b[A\x1bOB\x1b[5~", ["up", "down", "pageup"]),
        ("é请".encode(), ["é", "请"]),
        (b"\x1b[200~two\nlines\x1b[201~x", ["paste:two lines", "x"]),
        (b"\x1b[99~\x01", []),
        (b"\x1bj", ["esc", "j"]),
        (b"\xff", []),
    ],
)
def test_bytes_are_keys_when_they_are_complete(data: bytes, keys: list[str]) -> None:
    assert decode(data, last=True) == (keys, b"")


@pytest.mark.parametrize("data", [b"\x1b", b"\x1b[", "é".encode()[:1], b"\x1b[200~half"])
def test_bytes_are_kept_when_more_may_follow(data: bytes) -> None:
    assert decode(data) == ([], data)


def test_escape_is_a_key_when_nothing_follows() -> None:
    assert decode(b"\x1b", last=True) == (["esc"], b"")


class Terminal:
    def __init__(self, folder: Path, columns: int) -> None:
        self.ours, theirs = pty.openpty()
        self._resize(theirs, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        given = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "CI")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "inbox", "--as", "user:dana@acme"],
            cwd=folder,
            env=given | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
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
        ends = time.monotonic() + 20
        while not all(word in self.screen for word in words):
            assert time.monotonic() < ends, f"{words} not in:\n{self.screen}"
            if select.select([self.ours], [], [], 0.2)[0]:
                self.raw += os.read(self.ours, 65536).decode(errors="replace")
        return self.screen

    @property
    def screen(self) -> str:
        """What is painted by now, line by line."""
        last = self.raw.rpartition("\x1b[2J")[2]
        lines: dict[int, str] = {}
        for row, text in MOVES.findall(last):
            lines[int(row)] = CODES.sub("", text)
        return "\n".join(lines[row].rstrip() for row in sorted(lines))

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
    terminal.until("j k  Enter open  ? help  q leave")

    terminal.type("o1")
    terminal.until("Refund 250?", "1 [approve: Enter]")
    terminal.type("\r")
    terminal.until("Decided 'approve': Refund 250?.")
    cli("holds", "resolve", hold, "reject", "--as", "user:sam@acme")
    terminal.until("Resolved by user:sam@acme")
    terminal.type("uq")

    assert terminal.process.wait(timeout=20) == 0
    while select.select([terminal.ours], [], [], 0.5)[0]:
        terminal.raw += os.read(terminal.ours, 65536).decode()
    assert "\x1b[?1049l" in terminal.raw
    assert "1 decided." in terminal.raw.rpartition("\x1b[?1049l")[2]
    assert termios.tcgetattr(terminal.theirs) == terminal.before
    rows = json.loads(cli("holds", "list", "status:any", "--json").out)["items"]
    assert {row["prompt"]: row["resolved_by"] for row in rows} == {
        "Refund 250?": "user:dana@acme",
        "Refund 90?": "user:sam@acme",
    }


def test_ctrl_c_gives_the_screen_back(terminal: Terminal) -> None:
    terminal.until("Refund 250?")
    terminal.type("o2\x03")

    assert terminal.process.wait(timeout=20) == 0
    assert termios.tcgetattr(terminal.theirs) == terminal.before


def test_without_a_terminal_a_sentence_says_so(cli: Cli, tmp_path: Path) -> None:
    asyncio.run(_ask(tmp_path, 250))

    said = cli("inbox")

    assert (said.code, said.out) == (2, "")
    assert "holdfast holds list" in said.err
    assert len(cli("inbox", "--json").items) == 1
