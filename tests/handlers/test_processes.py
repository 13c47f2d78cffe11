"""`isolation="process"`: a node runs in a child process that can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from holdfast import Flow, Holdfast, RunSettings, RunStatus, Worker
from tests.deadlines import HANG
from tests.handlers.processes import contexts, effects, jobs, limited, maps

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-HANDLER-07")]


@pytest.fixture
async def hf(anyio_backend: str) -> AsyncIterator[Holdfast]:
    async with Holdfast("memory:", settings=RunSettings(grace=5.0, poll=0.02)) as opened:
        yield opened


async def test_a_node_runs_in_another_process_with_typed_state(hf: Holdfast) -> None:
    result = await jobs.run({"parts": ["a"]}, on=hf)
    assert result.completed, result.error
    assert result.state.parts == ["a", "done"]
    assert result.state.pid not in (0, os.getpid())


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("raises", "in the process"),
        ("exits", "sys.exit(0)"),
        ("dies", "ended with exit code 3"),
        ("ends well", "ended with exit code 0"),
        ("crashes", "SIGSEGV"),
        ("unstorable", "object"),
    ],
)
async def test_only_the_node_fails_when_its_process_ends(hf: Holdfast, way: str, text: str) -> None:
    failed, asks = await asyncio.gather(jobs.run({"way": way}, on=hf), effects.run({"way": way}, on=hf))
    assert failed.error is not None
    assert failed.failed_node == "work"
    assert text in f"{failed.error.type}: {failed.error.message}"
    # An effect may have happened before.
    assert asks.status is RunStatus.pending_input


async def test_an_effect_that_was_not_done_fails(hf: Holdfast) -> None:
    result = await effects.run({"way": "not_done"}, on=hf)
    assert result.error is not None
    assert result.error.code == "not_done"


async def test_the_process_is_killed_at_the_timeout_of_its_node(hf: Holdfast, tmp_path: Path) -> None:
    result = await limited.run({"way": "hangs", "folder": str(tmp_path)}, on=hf)
    assert result.error is not None
    assert result.error.code == "node_timeout"
    # On a busy machine it may not even have begun.
    assert not (tmp_path / "pid").exists() or not is_alive(int((tmp_path / "pid").read_text()))


async def test_the_process_is_killed_when_its_run_is_cancelled(hf: Holdfast, tmp_path: Path) -> None:
    service, file = await hf.service(), tmp_path / "pid"
    async with Worker(jobs, on=hf), asyncio.timeout(HANG):
        row, _ = await service.create(jobs.program(), {"way": "hangs", "folder": str(tmp_path)})
        while not file.exists() or not file.read_text():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await service.cancel(row.id)
        while (await service.get(row.id)).status is not RunStatus.cancelled:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert not is_alive(int(file.read_text()))


async def test_the_context_of_a_process_says_which_attempt_it_is(hf: Holdfast) -> None:
    result = await contexts.run({"way": "x"}, on=hf)
    assert (result.state.key, result.state.parts) == ("job-x", ["work", "1"])
    refused = await contexts.run({"way": "asks"}, on=hf)
    assert refused.error is not None
    assert refused.error.code == "script"


async def test_items_of_a_map_run_in_processes(hf: Holdfast) -> None:
    result = await maps.run({"items": [1, 2]}, on=hf)
    assert result.state["doubled"] == [2, 4]


async def test_a_flow_of_no_module_says_so(hf: Holdfast) -> None:
    flow = Flow("local", effect="pure")
    flow.node(id="work", isolation="process")(lambda: None)
    result = await flow.run(on=hf)
    assert result.error is not None
    assert result.error.code == "node_process"
    assert "no module has the flow" in result.error.message


@pytest.mark.parametrize(("script", "isolation"), [(True, "process"), (False, "thread")])
def test_what_cannot_run_in_a_process_is_refused(script: bool, isolation: str) -> None:
    flow = Flow("wrong")
    flow.task(lambda ctx: None, {"id": "work", "isolation": isolation}, script=script)
    assert [problem.rule for problem in flow.problems() if problem.rule == "isolation"] == ["isolation"]


FILE = """
import os, time
from pathlib import Path
from holdfast import Flow

alone = Flow("alone", effect="pure")

@alone.node(isolation="process")
def work(s):
    Path("pid.new").write_text(str(os.getpid()))
    os.replace("pid.new", "pid")
    while s.get("hangs"):
        time.sleep(0.05)
    return {"pid": os.getpid()}
"""


def test_the_command_line_runs_a_file_and_its_process_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(FILE)
    command = [sys.executable, "-m", "holdfast", "run", "alone.py", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["state"]["pid"] == int((tmp_path / "pid").read_text())
    (tmp_path / "pid").unlink()
    killed = subprocess.Popen([*command, "--input", '{"hangs": true}'], cwd=tmp_path)
    try:
        wait_until(lambda: (tmp_path / "pid").exists())
    finally:
        killed.kill()
        killed.wait()
    child = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_alive(child))


def wait_until(check: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG
    while not check():
        assert time.monotonic() < until
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A child of a killed process may stay in the table until the system's first process reaps it.
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"
