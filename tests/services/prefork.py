"""Child processes forked from a server that has already imported Holdfast.

A Python that imports Holdfast spends 0.3 s on it, and the tests start hundreds. Where a test looks at what a
process does, and not at how an interpreter starts, it takes one from here: a process of its own, with its own
folder, environment and files, that can be killed like any other. The server is multiprocessing's fork server:
it imports, runs nothing and has one thread, so its children inherit nothing of the tests.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.forkserver
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import IO, Any

from tests.deadlines import HANG

# The one fork server of a process: nothing else in the tests may say what it imports.
_SERVER = multiprocessing.get_context("forkserver")
_MODULES = "tests.services.prefork_modules"
_SERVER.set_forkserver_preload([_MODULES])
_ROOT = Path(__file__).parents[2]
_ENVIRONMENT = dict(os.environ)
"""Before any test has changed it: the server keeps the environment that it is started with."""


def started(target: Callable[..., None], args: tuple[Any, ...], *, daemon: bool = False) -> BaseProcess:
    """A process of the fork server that calls `target`."""
    process = _SERVER.Process(target=target, args=args, daemon=daemon)
    # The server finds the modules in the folder that it is started in, and the test may be in another.
    with contextlib.chdir(_ROOT), _first_environment():
        multiprocessing.forkserver.ensure_running()
    process.start()
    return process


@contextlib.contextmanager
def _first_environment() -> Iterator[None]:
    now = dict(os.environ)
    if now == _ENVIRONMENT:
        yield
        return
    os.environ.clear()
    os.environ.update(_ENVIRONMENT)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(now)


class Child:
    """What the tests use of `subprocess.Popen`; text only."""

    def __init__(
        self, module: str, words: Sequence[object], *, cwd: Path, env: Mapping[str, str],
        stdin: str = "", stdout: IO[Any] | None = None, stderr: IO[Any] | None = None,
    ) -> None:  # fmt: skip
        """Runs like `python -m MODULE WORDS`. What is not given a file can be read from a pipe."""
        asked, answers = os.pipe()
        self.stdout, out = _ends_of(stdout)
        self.stderr, err = _ends_of(stderr)
        self.args = [module, *map(str, words)]
        given = (str(cwd), dict(env), module, self.args[1:], _Files(asked, out, err))
        self._process = started(_become, given, daemon=True)
        for there in (asked, out, err):
            os.close(there)
        with contextlib.suppress(BrokenPipeError), os.fdopen(answers, "w") as pipe:
            pipe.write(stdin)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        return code

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it printed, when it has ended."""
        with ThreadPoolExecutor(2) as readers:
            texts = [readers.submit(_read, pipe) for pipe in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            out, err = (text.result() for text in texts)
        return out, err


def run(
    module: str, words: Sequence[object], *, cwd: Path, env: Mapping[str, str], stdin: str = "",
    timeout: float = HANG,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    child = Child(module, words, cwd=cwd, env=env, stdin=stdin)
    out, err = child.communicate(timeout)
    return subprocess.CompletedProcess(child.args, child.wait(), out, err)


class _Files:
    """Descriptors that travel to the child while it is started."""

    def __init__(self, *numbers: int) -> None:
        self.numbers = list(numbers)

    def __getstate__(self) -> list[Any]:
        return [DupFd(number) for number in self.numbers]

    def __setstate__(self, wrapped: list[Any]) -> None:
        self.numbers = [each.detach() for each in wrapped]


def _ends_of(file: IO[Any] | None) -> tuple[IO[str] | None, int]:
    """What the test reads from, and the descriptor that the child writes to."""
    if file is not None:
        return None, os.dup(file.fileno())
    here, there = os.pipe()
    return os.fdopen(here, "r", encoding="utf-8"), there


def _read(pipe: IO[str] | None) -> str:
    if pipe is None:
        return ""
    with pipe:
        return pipe.read()


def _become(cwd: str, env: dict[str, str], module: str, words: list[str], files: _Files) -> None:
    # Otherwise multiprocessing says nothing, and each child imports everything for itself.
    assert _MODULES in sys.modules, "the fork server did not import Holdfast"
    from holdfast.telemetry import arm_from_environment
    from tests.services.prefork_modules import PATH

    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    arm_from_environment()
    for number, descriptor in enumerate(files.numbers):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.path[:] = [cwd, *(place for place in PATH if place)]
    sys.argv = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
