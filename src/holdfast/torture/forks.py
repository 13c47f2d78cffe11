"""Child processes by fork: the flow is loaded once, and each process starts from there in milliseconds.

A child always ends with `os._exit`, so that nothing of its parent is cleaned up, flushed or run twice. It has
its own process group, and is ended together with the processes that user code started.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
ChildSequence = Generator[int, int | None, T]
"""Yields the id of a child that it started; is sent its exit code (negative: a signal; None: too slow)."""

_TICK = 0.02  # seconds between two checks if the system cannot signal the end of a child


def start(work: Callable[[], None]) -> int:
    with warnings.catch_warnings():
        # Threads of the parent do not exist in the child; it starts its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _run_child(work)
    return child


def _run_child(work: Callable[[], None]) -> None:
    # If even the set-up fails, the exit code says that the work was not done.
    code = 70
    try:
        # A group of its own, so that processes started by user code are killed with it.
        os.setsid()
        # Not the handlers of the parent: these signals must end the child.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(code)


def silence(file: Path) -> None:
    """Redirect the output of this process to that file."""
    _flush()
    out = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    sys.stdout = os.fdopen(os.dup(1), "w", buffering=1)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()


class _Child:
    def __init__(self, pid: int, until: float) -> None:
        self.pid = pid
        self.until = until
        # With a handle the end of a child wakes `select` at once; without one (not on Linux) it is polled.
        self.handle = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None

    def ended(self) -> int | None:
        found, status = os.waitpid(self.pid, os.WNOHANG)
        if found:
            # Processes that user code started must not outlive it, as when a machine dies.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self.close()
            return os.waitstatus_to_exitcode(status)
        return None

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            # Besides the group: a child that has not called setsid yet has no group of its own.
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.close()

    def close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


class Pool(Generic[T]):
    """At most `jobs` children at a time, each for at most `limit` seconds on the clock `now`."""

    def __init__(self, jobs: int, limit: float, now: Callable[[], float]) -> None:
        self._jobs = jobs
        self._limit = limit
        self._now = now
        self._busy: dict[ChildSequence[T], _Child] = {}

    def run(self, works: Iterable[ChildSequence[T]]) -> Iterator[T]:
        """The results as they come. Children that are left when the caller stops are ended."""
        rest = iter(works)
        done: list[T] = []
        try:
            while True:
                while len(self._busy) < self._jobs:
                    work = next(rest, None)
                    if work is None:
                        break
                    done += self._go_on(work, None, first=True)
                yield from done
                done = []
                if not self._busy:
                    return
                self._rest()
                done = [result for work, code in self._ended() for result in self._go_on(work, code)]
        finally:
            for child in self._busy.values():
                child.end()
            self._busy.clear()

    def _go_on(self, work: ChildSequence[T], code: int | None, *, first: bool = False) -> list[T]:
        try:
            pid = next(work) if first else work.send(code)
        except StopIteration as over:
            return [over.value]
        self._busy[work] = _Child(pid, self._now() + self._limit)
        return []

    def _rest(self) -> None:
        handles = [child.handle for child in self._busy.values() if child.handle is not None]
        soonest = min(child.until for child in self._busy.values()) - self._now()
        pause = max(0.0, soonest) if len(handles) == len(self._busy) else _TICK
        select.select(handles, [], [], pause)

    def _ended(self) -> list[tuple[ChildSequence[T], int | None]]:
        found: list[tuple[ChildSequence[T], int | None]] = []
        for work, child in list(self._busy.items()):
            code = child.ended()
            late = code is None and self._now() > child.until
            if late:
                child.end()
            if late or code is not None:
                del self._busy[work]
                found.append((work, code))
        return found
