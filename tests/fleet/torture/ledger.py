"""The outside world: a file that only grows. What stands in it has happened, whatever became of whom."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """`what`: begin (somebody was called), did (it happened), again (it had happened under this key and was
    only answered), end (the caller was told)."""

    what: str
    run: str
    effect: str
    key: str
    pid: int
    at: float  # on the machine's monotonic clock: the wall clocks lie
    gives: Any = None


class Outside:
    def __init__(self, file: Path) -> None:
        self.file = file

    def act(self, effect: str, run: str, key: str, gives: Any, linger: float) -> Any:
        """Once more each time: nobody out there recognises us."""
        with self._told(effect, run, key):
            time.sleep(linger)
            self._write("did", effect, run, key, gives)
            time.sleep(linger)
        return gives

    def act_once(self, effect: str, run: str, key: str, gives: Any, linger: float) -> Any:
        """By a system that knows its callers' keys, as a bank does: the same key is the same act."""
        with self._told(effect, run, key):
            time.sleep(linger)
            with self._alone():
                known = self.find(run, effect, lambda line: line.key == key)
                self._write("again" if known else "did", effect, run, key, known.gives if known else gives)
            time.sleep(linger)
        return known.gives if known else gives

    def find(self, run: str, effect: str, fits: Callable[[Line], bool] = bool) -> Line | None:
        """The first time that it happened."""
        for line in self.lines():
            if line.what == "did" and line.run == run and line.effect == effect and fits(line):
                return line
        return None

    def lines(self) -> list[Line]:
        if not self.file.exists():
            return []
        raw = self.file.read_bytes().splitlines(keepends=True)
        return [_decode(line) for line in raw if line.endswith(b"\n")]

    @contextmanager
    def _told(self, effect: str, run: str, key: str) -> Iterator[None]:
        self._write("begin", effect, run, key, None)
        yield
        self._write("end", effect, run, key, None)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        handle = os.open(f"{self.file}.lock", os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _write(self, what: str, effect: str, run: str, key: str, gives: Any) -> None:
        line = {
            "what": what, "run": run, "effect": effect, "key": key, "pid": os.getpid(),
            "at": time.monotonic(), "gives": gives,
        }  # fmt: skip
        append(self.file, line)


_decode = msgspec.json.Decoder(Line).decode


def append(file: Path, line: dict[str, Any]) -> None:
    """One write that is whole, and on the disk when this returns."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, json.dumps(line).encode() + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)
