"""The command line in a terminal of its own: what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

from tests.deadlines import HANG

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seen(NamedTuple):
    code: int
    raw: str

    @property
    def text(self) -> str:
        """Without colours and cursor moves; frames of a live view follow each other."""
        return CODES.sub("", self.raw).replace("\r", "")

    @property
    def screen(self) -> list[str]:
        """What is left to see at the end."""
        return _screen(self.raw)


def in_terminal(folder: Path, *words: str, columns: int = 100, rows: int = 40, **env: str) -> Seen:
    """Runs to its end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    given = {
        k: v
        for k, v in os.environ.items()
        if k not in ("HOLDFAST_STORE", "NO_COLOR", "COLUMNS", "LINES", "CI")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        cwd=folder,
        env=given | {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"} | env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    return Seen(*_read(ours, process))


def _screen(raw: str) -> list[str]:
    """As much of a terminal as a live view needs: lines, returns, upwards, erasing a line."""
    lines: list[list[str]] = [[]]
    row = col = 0
    for code, char in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z])|([\s\S])", raw):
        if code.endswith("A"):
            row = max(row - int(code[2:-1] or 1), 0)
        elif code == "\x1b[2K":
            lines[row] = []
        elif char == "\r":
            col = 0
        elif char == "\n":
            row += 1
            lines += [[] for _ in range(row + 1 - len(lines))]
        elif char:
            lines[row] += [" "] * (col + 1 - len(lines[row]))
            lines[row][col] = char
            col += 1
    return ["".join(line).rstrip() for line in lines]


def _read(ours: int, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    parts: list[bytes] = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # the other side is closed: the process has ended
    finally:
        os.close(ours)
    return process.wait(timeout=HANG), b"".join(parts).decode()
