"""The log of one trial, written by its processes and read by the comparison: one line per event.

A line is one write: a process that is killed leaves whole lines, and nothing has to be flushed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from holdfast.model.shown_names import shown_name
from holdfast.torture.boundaries import Point


class CallId(msgspec.Struct, frozen=True, order=True):
    """Which work of the run: a visit of a node, or one sub-step of it."""

    scope: str
    node: str
    visit: int
    step: str = ""  # the sub-step's number
    name: str = ""  # and its name

    def __str__(self) -> str:
        again = f" (visit {self.visit})" if self.visit > 1 else ""
        step = f", step {self.name!r}" if self.name else ""
        return f"{shown_name(self.scope + self.node)}{step}{again}"


class CallBegun(msgspec.Struct, frozen=True, tag="begun"):
    call: CallId
    effect: str
    life: int
    key: str | None = None
    given: str | None = None  # a digest of the arguments, if they can be encoded


class CallEnded(msgspec.Struct, frozen=True, tag="ended"):
    """`done` is False if the code reported that nothing happened (NotDone)."""

    call: CallId
    life: int
    done: bool = True
    error: str | None = None
    value: Any = None


class BoundaryPassed(msgspec.Struct, frozen=True, tag="passed"):
    point: Point


class Doubt(msgspec.Struct, frozen=True, tag="doubt"):
    """A question "did this happen?", and what it was answered."""

    call: CallId
    answer: str


class UndeclaredEffect(msgspec.Struct, frozen=True, tag="suspect"):
    """An effect of code that is declared to have none."""

    call: CallId
    effect: str
    did: str


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """The state of the run when nothing is left to do."""

    status: str
    state: Any
    artifacts: Any
    error: str | None
    holds: list[str]
    waits: list[str]


class TrialError(msgspec.Struct, frozen=True, tag="broken"):
    """The process could not continue; `given`: because of the user's options, not because of the flow."""

    text: str
    given: bool = False


Note = CallBegun | CallEnded | BoundaryPassed | Doubt | UndeclaredEffect | Ending | TrialError
_DECODER: msgspec.json.Decoder[Note] = msgspec.json.Decoder(Note)


class TrialLog:
    """One file; written by the processes of a trial, read by the comparison."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def write(self, note: Note) -> None:
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(self._file, msgspec.json.encode(note) + b"\n")

    def read(self) -> list[Note]:
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [_DECODER.decode(line) for line in lines]
