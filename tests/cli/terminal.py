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

CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seen(NamedTuple):
    code: int
    raw: str

    @property
    def text(self) -> str:
        """Without colours and cursor moves; frames of a live view follow each other."""
        return CODES.sub("", self.raw).replace("\r", "")


def in_terminal(folder: Path, *words: str, columns: int = 100, **env: str) -> Seen:
    """Runs to its end."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    given = {k: v for k, v in os.environ.items() if k not in ("HOLDFAST_STORE", "NO_COLOR", "COLUMNS", "CI")}
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


def _read(ours: int, process: subprocess.Popen[bytes]) -> tuple[int, str]:
    parts: list[bytes] = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:
        pass  # the other side is closed: the process has ended
    finally:
        os.close(ours)
    return process.wait(timeout=30), b"".join(parts).decode()
