"""Real processes of the command line, to be killed: each is forked from a server that has loaded the code."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from holdfast.attractor.detached_commands import kill_all
from holdfast.types.ids import new_run_id
from tests.attractor.victims import CHILD
from tests.deadlines import HANG
from tests.services import prefork

CRASHED = 137
# A run whose process died is free soon.
LEASE = "400ms"


class End(NamedTuple):
    """What a run came to, and how often each of its effects happened."""

    status: str
    completed: list[str]
    effects: Counter[str]


def until(check: Callable[[], Any], what: str = "") -> None:
    deadline = time.monotonic() + HANG
    while not check():
        if time.monotonic() > deadline:
            pytest.fail(f"not within 40 seconds: {what or check}")
        time.sleep(0.01)


def _live(words: list[str], folder: str, said: str, crash: str, more: dict[str, str]) -> None:
    """In the child: the command line, as it is called from a shell."""
    os.chdir(folder)
    for name in [name for name in os.environ if name.startswith("HOLDFAST_")]:
        del os.environ[name]
    os.environ["HOLDFAST_LEASE"] = LEASE
    os.environ.update(more)
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    from holdfast import telemetry
    from holdfast.cli.main import run

    if crash:
        point, _, nth = crash.partition(":")
        telemetry.arm(point, nth=int(nth or 1))
    code = run(words)
    sys.stdout.flush()
    os._exit(code)


class Called:
    """One process of the command line."""

    def __init__(
        self, words: list[str], folder: Path, said: Path, crash: str, environment: dict[str, str]
    ) -> None:
        self.said = said
        given = (words, str(folder), str(said), crash, environment)
        self.process: BaseProcess = prefork.started(_live, given)

    def end(self, within: float = HANG) -> int:
        self.process.join(within)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            pytest.fail(f"it did not end: {self.told}")
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL, self.told

    @property
    def told(self) -> str:
        return self.said.read_text() if self.said.exists() else ""


class Place:
    """A folder with a pipeline, its store and the files that its tools leave."""

    def __init__(self, folder: Path, text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.run_id = str(new_run_id())
        self.calls: list[Called] = []
        self.environment: dict[str, str] = {}
        (folder / "x.dot").write_text(text)

    def call(self, *words: str, crash: str = "") -> Called:
        said = self.folder / f"said-{len(self.calls)}"
        called = Called(list(words), self.folder, said, crash, self.environment)
        self.calls.append(called)
        return called

    def start(self, crash: str = "", *more: str) -> Called:
        words = ["run", "x.dot", "--simulate", "--logs", "D", "--run-id", self.run_id, *more]
        return self.call(*words, crash=crash)

    def resume(self, crash: str = "") -> Called:
        return self.call("resume", self.run_id, "--json", crash=crash)

    def has(self, name: str) -> bool:
        return (self.folder / name).exists()

    def touch(self, name: str) -> None:
        (self.folder / name).touch()

    @property
    def trace(self) -> list[str]:
        path = self.folder / "trace"
        return path.read_text().split() if path.exists() else []

    @property
    def _store(self) -> Path:
        return self.folder / ".holdfast" / "holdfast.db"

    def is_claimed_again(self) -> bool:
        with closing(apsw.Connection(str(self._store))) as store:
            return bool(store.execute("SELECT 1 FROM runs WHERE term >= 2").fetchall())

    def statuses(self) -> set[str]:
        with closing(apsw.Connection(str(self._store))) as store:
            store.set_busy_timeout(5000)
            return {str(status) for (status,) in store.execute("SELECT status FROM runs")}

    def is_locked(self) -> bool:
        try:
            with closing(apsw.Connection(str(self._store))) as store:
                store.set_busy_timeout(100)
                store.execute("BEGIN IMMEDIATE; ROLLBACK")
        except apsw.BusyError:
            return True
        return False

    def end(self) -> End:
        """Where the run stands, as the last process told; its directories show the same."""
        # What it logs about a blocked loop may come after the reply.
        reply = json.loads([line for line in self.calls[-1].told.splitlines() if line.startswith("{")][-1])
        assert self._shown() == reply["completed_nodes"]
        return End(reply["status"], reply["completed_nodes"], Counter(self.trace))

    def _shown(self) -> list[str]:
        """The run's directory, then those of its restarts."""
        logs = self.folder / "D"
        found = [logs / "checkpoint.json", *sorted(logs.glob("restart-*/checkpoint.json"))]
        return [name for path in found for name in json.loads(path.read_text())["completed_nodes"]]

    def clean_up(self) -> None:
        for called in self.calls:
            if called.process.is_alive():
                called.process.kill()
                called.process.join()
        kill_all(self.folder / "D")


def in_peace(folder: Path, text: str, *go: str) -> End:
    """The same pipeline, with nobody killed."""
    place = Place(folder, text)
    (folder / "child.dot").write_text(CHILD)
    for name in go:
        place.touch(name)
    assert place.start("", "--json").end() in (0, 1), place.calls[-1].told
    return place.end()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Callable[[str], Place]]:
    made: list[Place] = []

    def make(text: str) -> Place:
        made.append(Place(tmp_path / f"place-{len(made)}", text))
        (made[-1].folder / "child.dot").write_text(CHILD)
        return made[-1]

    yield make
    for each in made:
        each.clean_up()


def finished(place: Place) -> End:
    """Resumed by one more process."""
    assert place.resume().end() in (0, 1), place.calls[-1].told
    return place.end()
