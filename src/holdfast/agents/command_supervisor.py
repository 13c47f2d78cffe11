"""Runs one command and ends it: at its time limit, when it is told to, and when the worker is gone.

It is a program of its own, without imports of Holdfast, so that the limit does not depend on the worker. The
worker has the other end of a pipe that closes with it, however it ends. What happens is written to a second
pipe: `pid N`, then `error N` (of the start), or `timeout` perhaps, and `exit N`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Final

_POLL: Final = 0.02
_STOPS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Supervisor:
    """`control`: a pipe whose end is the order to stop. `limit`: seconds; 0 for none. `grace`: seconds
    between SIGTERM and SIGKILL."""

    def __init__(self, control: int, status: int, limit: float, grace: float) -> None:
        self._control = control
        self._status = status
        self._limit = limit
        self._grace = grace
        self._code: int | None = None
        for inherited in (control, status):
            os.set_inheritable(inherited, False)
        # Signals wake `select`, and are handled between two calls of it.
        self._signals, wakes = os.pipe()
        os.set_blocking(wakes, False)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, *_STOPS):
            signal.signal(number, _noted)

    def run(self, words: list[str]) -> None:
        self._pid = self._start(words)
        self._say(f"pid {self._pid}")
        ended_by = self._wait()
        if ended_by != "exit":
            self._say(ended_by)
            self._stop()
        # What the command left running is ended too.
        _signal(self._pid, signal.SIGKILL)
        while not self._has_ended():
            select.select([self._signals], [], [], _POLL)
        self._say(f"exit {self._code}")

    def _start(self, words: list[str]) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            # A session of its own: the command must not share a group with what supervises it.
            os.setsid()
            # Python ignores these two, and a command would inherit that.
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(words[0], words)
        except OSError as error:
            self._say(f"error {error.errno}")
        os._exit(127)

    def _say(self, line: str) -> None:
        # Without a worker nobody reads it; the command is ended all the same.
        with suppress(OSError):
            os.write(self._status, f"{line}\n".encode())

    def _wait(self) -> str:
        """Why it is over: `exit`, `timeout` or `stop`."""
        ends = time.monotonic() + self._limit if self._limit else None
        while not self._has_ended():
            left = None if ends is None else ends - time.monotonic()
            if left is not None and left <= 0:
                return "timeout"
            ready, _, _ = select.select([self._control, self._signals], [], [], left)
            if self._control in ready:
                return "stop"
            if self._signals in ready and set(os.read(self._signals, 512)) & set(_STOPS):
                return "stop"
        return "exit"

    def _has_ended(self) -> bool:
        if self._code is None:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code is not None

    def _stop(self) -> None:
        _signal(self._pid, signal.SIGTERM)
        ends = time.monotonic() + self._grace
        # The first process may be gone before its children have cleaned up.
        while time.monotonic() < ends and (not self._has_ended() or _signal(self._pid, 0)):
            time.sleep(_POLL)


def _noted(_number: int, _frame: object) -> None:
    """With a handler of its own the signal ends nothing, and wakes `select`."""


def _signal(group: int, number: int) -> bool:
    """Whether there is such a group."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    control, status, limit, grace, *words = sys.argv[1:]
    Supervisor(int(control), int(status), float(limit), float(grace)).run(words)
