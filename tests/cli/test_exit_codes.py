"""`holdfast run` exits 0 only for a run that has completed, and `dead show` names the node that killed its
workers."""

from __future__ import annotations

import asyncio
import atexit
import importlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.cli.exit_codes import Exit
from holdfast.cli.exit_guard import ExitGuard
from holdfast.cli.main import NATIVE, _leave_threads
from tests.cli.conftest import Cli
from tests.deadlines import HANG

HEAD = """
import asyncio, os, sys, threading
from holdfast import Flow
flow = Flow("flow", effect="pure")
"""
# What the code of a run, or of its file, can do to end the process.
BODIES = {
    "exit": "@flow.node\nasync def work():\n    sys.exit(0)\n",
    "exit_in_thread": "@flow.node\ndef work():\n    sys.exit(0)\n",
    "exit_in_awaited_task": "@flow.node\nasync def work():\n    await asyncio.create_task(bad())\n",
    "exit_in_gathered_tasks": "@flow.node\nasync def work():\n    await asyncio.gather(bad(), bad())\n",
    "exit_in_group": "@flow.node\nasync def work():\n    async with asyncio.TaskGroup() as g:\n"
    "        g.create_task(bad())\n",
    "interrupt": "@flow.node\nasync def work():\n    raise KeyboardInterrupt\n",
    "cancel": "@flow.node\nasync def work():\n    asyncio.current_task().cancel()\n"
    "    await asyncio.sleep(0)\n",
    "exit_in_file": "sys.exit(0)\n",
}


@pytest.mark.covers("SAFE-HANDLER-06")
@pytest.mark.parametrize("name", BODIES)
def test_run_never_exits_0_when_its_code_ends_the_process(cli: Cli, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.py"
    path.write_text(f"{HEAD}\nasync def bad():\n    sys.exit(0)\n\n{BODIES[name]}")
    said = cli("run", str(path))
    assert said.code not in (Exit.ok, Exit.broken)
    if name != "exit_in_file":
        assert said.code == Exit.run_failed
        assert [row["status"] for row in cli("runs", "--json").items] == ["failed"]


@pytest.mark.covers("SAFE-HANDLER-06")
def test_run_completes_when_a_task_that_its_code_forgot_exits(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "forgets.py"
    body = "@flow.node\nasync def work():\n    asyncio.create_task(bad())\n    await asyncio.sleep(0.01)\n"
    path.write_text(f"{HEAD}\nasync def bad():\n    sys.exit(0)\n\n{body}")
    assert cli("run", str(path)).code == Exit.ok


@pytest.mark.covers("SAFE-HANDLER-06", "SAFE-HANDLER-05")
@pytest.mark.parametrize(
    ("line", "ends"),
    [
        ("os._exit(0)", Exit.broken),
        ("threading.Thread(target=threading.Event().wait).start(); raise ValueError", Exit.run_failed),
        ("threading.Thread(target=threading.Event().wait).start()", Exit.ok),
        ("asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)", Exit.ok),
    ],
)
def test_the_process_of_a_run_ends_with_its_code(line: str, ends: Exit, tmp_path: Path) -> None:
    """With threads that its code left behind, and when its code ends the process at once."""
    (tmp_path / "flow.py").write_text(f"{HEAD}\n@flow.node\nasync def work():\n    {line}\n")
    command = [sys.executable, "-m", "holdfast", "run", "flow.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert ended.returncode == ends, ended.stderr
    if ends is not Exit.broken:
        assert "left a thread" in ended.stderr


# What a file can do to end the command that loads it, and what the command exits with.
ENDINGS = {
    "os._exit(0)": Exit.broken,
    "atexit.register(os._exit, 0); sys.exit = print; flow.edge('x', 'y')": Exit.run_failed,
    "pid = os.fork() or os._exit(0); os.waitpid(pid, 0); atexit.register(os._exit, 0)": Exit.ok,
}


@pytest.mark.covers("SAFE-HANDLER-06", "SAFE-CHECK-12")
@pytest.mark.parametrize("line", ENDINGS)
def test_check_never_exits_0_when_the_file_ends_the_process(line: str, tmp_path: Path) -> None:
    body = "@flow.node\ndef work(s) -> None: ...\n"
    (tmp_path / "flow.py").write_text(f"import atexit, importlib{HEAD}{body}{line}\n")
    command = [sys.executable, "-m", "holdfast", "check", "flow.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert ended.returncode == ENDINGS[line], ended.stderr
    assert ("the command has not done its work" in ended.stderr) == (ended.returncode == Exit.broken)


def in_a_child(action: Callable[[ExitGuard], Any]) -> int:
    """What a process exits with that is guarded and does this."""
    pid = os.fork()
    if pid == 0:
        real = os._exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            guard = ExitGuard()
            guard.install()
            action(guard)
        finally:
            real(99)  # it came back
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def after(guard: ExitGuard, code: int) -> None:
    guard.ended = code


def with_native_threads(guard: ExitGuard) -> None:
    """After a command that used the SDK of a cluster."""
    sys.modules[NATIVE] = os
    atexit._clear()
    atexit.register(after, guard, 3)
    guard.ended = 0
    _leave_threads(0)


WAYS: dict[str, tuple[Callable[[ExitGuard], Any], int]] = {
    "_exit": (lambda _: os._exit(0), Exit.broken),
    "256 is 0": (lambda _: os._exit(256), Exit.broken),
    "another code": (lambda _: os._exit(7), 7),
    "native threads": (with_native_threads, 3),
    "after the command": (lambda guard: (after(guard, 2), os._exit(0)), 2),
    "execl": (lambda _: os.execl("/bin/true", "true"), Exit.broken),
    "execle": (lambda _: os.execle("/bin/true", "true", {}), Exit.broken),
    "execlp": (lambda _: os.execlp("true", "true"), Exit.broken),
    "execlpe": (lambda _: os.execlpe("true", "true", os.environ), Exit.broken),
    "execv": (lambda _: os.execv("/bin/true", ["true"]), Exit.broken),
    "execve": (lambda _: os.execve("/bin/true", ["true"], {}), Exit.broken),
    "execvp": (lambda _: os.execvp("true", ["true"]), Exit.broken),
    "execvpe": (lambda _: os.execvpe("true", ["true"], os.environ), Exit.broken),
    "reload": (lambda _: importlib.reload(os)._exit(0), Exit.broken),
    "thread": (
        lambda _: [t := threading.Thread(target=os._exit, args=(0,)), t.start(), t.join()],
        Exit.broken,
    ),
    "own child": (
        lambda _: os._exit(os.waitstatus_to_exitcode(os.waitpid(os.fork() or os._exit(8), 0)[1])),
        8,
    ),
}


@pytest.mark.covers("SAFE-CHECK-12")
@pytest.mark.parametrize("way", WAYS)
def test_process_does_not_exit_with_0_whatever_way_code_ends_it(way: str) -> None:
    action, code = WAYS[way]
    assert in_a_child(action) == code


def test_every_function_of_os_that_ends_the_process_is_in_the_table() -> None:
    assert {name for name in dir(os) if name.startswith("exec") or name == "_exit"} <= WAYS.keys()


KILLER = """
import asyncio, os, sys
from holdfast import Flow, Holdfast, RunSettings, Worker

flow = Flow("killer", effect="pure")

@flow.node
async def harmless(s): return {"a": 1}

@flow.node
async def fine(s): return {"b": 1}

@flow.node
async def kills(s): os._exit(9)

flow.chain(harmless, fine, kills)

async def main():
    settings = RunSettings(lease_ttl=0.2, poll=0.02)
    async with Holdfast("sqlite:h.db", settings=settings) as hf:
        await Worker(flow, on=hf, max_recoveries=1, recovery_backoff=0.0).serve()

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.covers("SAFE-HANDLER-06")
def test_dead_show_names_the_node_that_kills_its_workers(cli: Cli, tmp_path: Path) -> None:
    """It runs so soon after the others that a worker has not written their records when it dies."""
    path = tmp_path / "killer.py"
    path.write_text(KILLER)
    store = f"sqlite:{tmp_path / 'h.db'}"
    run = cli("run", f"{path}:flow", "--detach", "--json", "--store", store).json["id"]
    for _ in range(6):
        worker = subprocess.run([sys.executable, str(path)], cwd=tmp_path, timeout=HANG, check=False)
        assert worker.returncode == 9
        if asyncio.run(is_dead(store, run)):
            break
    shown = cli("dead", "show", run, "--store", store)
    assert "kills was running at every death" in shown.out


async def is_dead(store: str, run: str) -> bool:
    """After the lease of the last worker: any worker would find that."""
    async with Holdfast(store) as hf:
        opened = await hf.open()
        async with asyncio.timeout(HANG):
            while not await opened.reclaim(limit=9, max_recoveries=1):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        row = await (await hf.service()).get(run)
        return row.dead
