"""The command line as a process: signals, pipes, and what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deadlines import HANG
from tests.services import prefork

SLOW = """
import asyncio
from pathlib import Path
from holdfast import Flow

slow = Flow("slow", effect="pure")

@slow.node
async def first(s):
    Path("first").write_text(str(int(Path("first").read_text() or 0) + 1) if Path("first").exists() else "1")
    return {"first": True}

@slow.node
async def second(s):
    Path("began").touch()
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return {"second": True}

@slow.node
async def third(s):
    return {"third": True}

slow.chain(first, second, third)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    return tmp_path


def environment() -> dict[str, str]:
    return {k: v for k, v in os.environ.items() if k != "HOLDFAST_STORE"} | {"HOLDFAST_LEASE": "500ms"}


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "holdfast", *words],
        cwd=folder,
        env=environment(),
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=HANG)
    return process.returncode, out, err


def until_said(process: subprocess.Popen[str], word: str) -> None:
    """Until it has written this to its standard error."""
    assert process.stderr is not None
    assert any(word in line for line in process.stderr), f"it ended without {word}"


def wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read(folder: Path, *words: str) -> dict[str, Any]:
    return json.loads(prefork.run("holdfast", [*words, "--json"], cwd=folder, env=environment()).stdout)


def runs(folder: Path) -> list[dict[str, object]]:
    return read(folder, "runs")["items"]


def shown(folder: Path, run: str) -> dict[str, Any]:
    return read(folder, "show", run)


@pytest.mark.covers("R-33", "R-36", "TOOL-CLI-02")
def test_resume_repeats_no_settled_step_when_the_process_was_killed(folder: Path) -> None:
    killed = start(folder, "run", "slow.py")
    wait_until((folder / "began").exists)
    run = str(runs(folder)[0]["id"])
    wait_until(lambda: shown(folder, run)["state"].get("first"))
    killed.send_signal(signal.SIGKILL)
    finish(killed)
    (folder / "go").touch()

    code, out, _ = finish(start(folder, "resume", str(runs(folder)[0]["id"]), "--json"))

    assert (code, json.loads(out)["status"]) == (0, "completed")
    assert (folder / "first").read_text() == "1"


def test_run_gives_the_run_back_when_interrupted_once(folder: Path) -> None:
    running = start(folder, "run", "slow.py", "--json")
    wait_until((folder / "began").exists)
    running.send_signal(signal.SIGINT)
    until_said(running, "Stopping")
    (folder / "go").touch()
    code, out, _ = finish(running)

    assert (code, json.loads(out)["status"]) == (130, "resumable")
    code, out, err = finish(start(folder, "resume", json.loads(out)["id"], "--json"))
    assert (code, json.loads(out)["state"]) == (0, {"first": True, "second": True, "third": True})
    assert "waiting for it" not in err  # nobody's lease had to lapse


def test_run_stops_at_once_when_interrupted_twice(folder: Path) -> None:
    running = start(folder, "run", "slow.py")
    wait_until((folder / "began").exists)
    running.send_signal(signal.SIGINT)
    until_said(running, "Stopping")
    running.send_signal(signal.SIGINT)
    code, _, err = finish(running)

    assert code == 130
    assert "Traceback" not in err
    assert runs(folder)[0]["status"] == "resumable"


@pytest.mark.covers("CORE-CLI-06", "CORE-WORK-08", "TOOL-CLI-13")
def test_worker_drains_when_terminated(folder: Path) -> None:
    worker = start(folder, "worker", "slow.py")
    wait_until(lambda: (folder / ".holdfast" / "holdfast.db-flows.json").exists())
    running = start(folder, "run", "slow.py", "--json")
    wait_until((folder / "began").exists)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGKILL)
    finish(running)
    run = str(runs(folder)[0]["id"])
    wait_until(lambda: shown(folder, run)["stored"]["recoveries"] == 1)  # the worker found it
    wait_until(lambda: runs(folder)[0]["status"] == "running")
    worker.send_signal(signal.SIGTERM)
    until_said(worker, "Draining")
    (folder / "go").touch()
    code, _, err = finish(worker)

    assert code == 0, err
    assert runs(folder)[0]["status"] in ("resumable", "completed")


def test_import_loads_neither_command_line_nor_driver() -> None:
    names = ("typer", "rich", "apsw")
    script = f"import sys, holdfast; holdfast.Flow; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    import holdfast

    assert all(getattr(holdfast, name) is not None for name in holdfast.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = holdfast.nonsense


def test_help_loads_neither_rich_nor_an_event_loop() -> None:
    names = ("rich.console", "asyncio", "apsw", "pydantic")
    script = (
        "import sys; from holdfast.cli.main import run; run(['--help']); "
        f"print([m for m in {names} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_output_may_be_cut_off_by_its_reader(folder: Path) -> None:
    (folder / "go").touch()
    finish(start(folder, "run", "slow.py"))
    command = f"{sys.executable} -m holdfast runs | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.covers("SAFE-HANDLER-03")
def test_command_ends_when_a_task_of_the_code_swallows_its_cancellation(tmp_path: Path) -> None:
    (tmp_path / "stray.py").write_text(
        "import asyncio\n"
        "from holdfast import Flow\n"
        "stray = Flow('stray', effect='pure')\n"
        "async def endless():\n"
        "    while True:\n"
        "        try:\n"
        "            await asyncio.sleep(60)\n"
        "        except asyncio.CancelledError:\n"
        "            pass\n"
        "@stray.node\n"
        "async def start(s):\n"
        "    asyncio.create_task(endless(), name='endless')\n"
    )
    done = prefork.run("holdfast", ["run", "stray.py", "--store", "memory:"], cwd=tmp_path, env=os.environ)
    assert done.returncode == 0, done.stderr
    assert "did not stop, and is left behind: endless" in done.stderr
    assert "Traceback" not in done.stderr
