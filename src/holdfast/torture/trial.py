"""One trial: a run on a separate store, in as many processes as it takes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from holdfast.app.flow import Flow
from holdfast.app.holdfast import Holdfast
from holdfast.torture import effects
from holdfast.torture.boundaries import Point
from holdfast.torture.forks import ChildSequence, silence, start
from holdfast.torture.process_run import Task, TrialProcess, TrialSetup, address_of
from holdfast.torture.trial_log import BoundaryPassed, Ending, Note, TrialError
from holdfast.types.clock import SystemClock

_SECOND_DAY = 1_893_456_000_000_000  # 2030-01-01, microseconds
_LATER = 86_400_000_000 * 40
EMPTY = "empty.db"


# Modules that each process would import: loaded once before the first fork, which is faster.
_LOADED_LATE = (
    "holdfast.store.sql.sqlite",
    "holdfast.store.blob.local",
    "concurrent.futures.thread",
    "importlib.resources.readers",
)


class TrialResult(msgspec.Struct, kw_only=True):
    """The result of one trial. `ending` is None if it did not end; `trouble` is the reason."""

    kills: Sequence[Point]
    folder: Path
    lives: int
    reached: bool
    notes: list[Note]
    ending: Ending | None
    outside: Counter[str]
    trouble: str = ""
    bad_input: bool = False

    @property
    def points(self) -> list[Point]:
        """The boundaries that its last process reached, if they were recorded."""
        return [note.point for note in self.notes if isinstance(note, BoundaryPassed)]


class TrialRunner(msgspec.Struct, frozen=True, kw_only=True):
    """What all trials share. `copies` are put into the working folder of each; `files` are read there."""

    flow: Flow
    task: Task
    folder: Path
    copies: Sequence[Path] = ()
    files: Sequence[str] = ()

    def prepare(self) -> ChildSequence[None]:
        """An empty store, made once: copying it is ten times faster than creating one for each trial."""
        for name in _LOADED_LATE:
            import_module(name)
        yield start(lambda: asyncio.run(_make_store(self.folder / EMPTY)))

    def trial(
        self, name: str, kills: Sequence[Point] = (), *, later: bool = False, record: bool = False
    ) -> ChildSequence[TrialResult]:
        """`kills`: where the first process ends, and the next. `later`: on another day, so that a dependence
        on the time becomes visible. `record`: the last process records its boundaries."""
        stage = self._stage(name, later=later)
        number, code, reached = 0, None, 0
        # One process more than kills: the last one must bring the run to its end undisturbed.
        while number == 0 or (code == -signal.SIGKILL and number <= max(len(kills), 1)):
            here = kills[number] if number < len(kills) else None
            number += 1
            code = yield start(lambda n=number, k=here: self._live(stage, n, k, record=record))
            reached += here is not None and code == -signal.SIGKILL
        return self._seen(stage, kills, number, code, reached=reached == len(kills) > 0)

    def _stage(self, name: str, *, later: bool) -> TrialSetup:
        folder = self.folder / name
        stage = TrialSetup(
            folder=folder,
            start=_SECOND_DAY + (_LATER if later else 0),
            began=SystemClock().monotonic(),
        )
        stage.work.mkdir(parents=True)
        empty = self.folder / EMPTY
        if empty.exists():
            shutil.copy2(empty, stage.store)
        for source in self.copies:
            if source.is_dir():
                shutil.copytree(source, stage.work / source.name)
            else:
                shutil.copy2(source, stage.work)
        return stage

    def _live(self, stage: TrialSetup, number: int, kill: Point | None, *, record: bool) -> None:
        silence(stage.folder / "output.txt")
        # A flow that was loaded by module name must still find its sibling modules later.
        sys.path[:] = [place or str(Path.cwd()) for place in sys.path]
        os.chdir(stage.work)
        os.environ[effects.ENVIRONMENT] = str(stage.effects)
        # Code of the flow that opens a store by default must not reach the user's.
        os.environ.pop("HOLDFAST_STORE", None)
        asyncio.run(TrialProcess(self.flow, self.task, stage, number, kill=kill, record=record).live())

    def _seen(
        self, stage: TrialSetup, kills: Sequence[Point], lives: int, code: int | None, *, reached: bool
    ) -> TrialResult:
        notes = stage.trial_log.read()
        ending = next((n for n in reversed(notes) if isinstance(n, Ending)), None)
        broken = next((n for n in reversed(notes) if isinstance(n, TrialError)), None)
        trouble = "" if ending is not None else _failure_text(broken, code, stage)
        return TrialResult(
            kills=kills,
            folder=stage.folder,
            lives=lives,
            reached=reached,
            notes=notes,
            ending=ending,
            outside=effects.read([stage.effects, *(stage.work / name for name in self.files)]),
            trouble=trouble,
            bad_input=broken is not None and broken.given,
        )


async def _make_store(place: Path) -> None:
    async with Holdfast(address_of(place)) as hf:
        await hf.open()


def _failure_text(broken: TrialError | None, code: int | None, stage: TrialSetup) -> str:
    if broken is not None:
        return broken.text
    if code is None:
        return "it did not end in time"
    lines = (stage.folder / "output.txt").read_text(errors="replace").strip().splitlines()
    return f"its process ended with {code}{f': {lines[-1]}' if lines else ''}"
