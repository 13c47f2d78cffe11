"""`holdfast run` exits 0 only for a run that has completed, and `dead show` names the node that killed its
workers."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.cli.main import Exit
from tests.cli.conftest import Cli

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
    ],
)
def test_the_process_of_a_run_ends_with_its_code(line: str, ends: Exit, tmp_path: Path) -> None:
    """With threads that its code left behind, and when its code ends the process at once."""
    (tmp_path / "flow.py").write_text(f"{HEAD}\n@flow.node\nasync def work():\n    {line}\n")
    command = [sys.executable, "-m", "holdfast", "run", "flow.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=50, check=False)
    assert ended.returncode == ends, ended.stderr
    if ends is not Exit.broken:
        assert "left a thread" in ended.stderr


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
        worker = subprocess.run([sys.executable, str(path)], cwd=tmp_path, timeout=50, check=False)
        assert worker.returncode == 9
        if asyncio.run(is_dead(store, run)):
            break
    shown = cli("dead", "show", run, "--store", store)
    assert "kills was running at every death" in shown.out


async def is_dead(store: str, run: str) -> bool:
    """After the lease of the last worker: any worker would find that."""
    async with Holdfast(store) as hf:
        opened = await hf.open()
        async with asyncio.timeout(30):
            while not await opened.reclaim(limit=9, max_recoveries=1):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        row = await (await hf.service()).get(run)
        return row.dead
