"""A process is killed for real in the middle of a call of a coding tool, and another resumes the run."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from holdfast import Holdfast, Result
from holdfast.agents.coding.kit import UNKNOWN
from holdfast.agents.coding.project_folder import ProjectFolder
from holdfast.testing.clock import FakeClock
from tests.agents.test_coding_tools import is_alive
from tests.agents.test_killed import load
from tests.deadlines import HANG
from tests.flows.conftest import address_of

pytestmark = pytest.mark.anyio

FLOW = '''
import os
from pathlib import Path

from holdfast import Flow, Scripted, coding_tools, tool_call
from holdfast.agents.coding.project_folder import ProjectFolder

ROOT, WHEN = Path(os.environ["AGENT_ROOT"]), os.environ["AGENT_KILLED"]
KILLED = ROOT.parent / "killed"
PATCH = """*** Begin Patch
*** Update File: a.txt
@@
 one
+one
*** Add File: b.txt
+b
*** End Patch"""
CALLS = {
    "edit": tool_call("edit_file", file_path="a.txt", old_string="one", new_string="one one"),
    "patch": tool_call("apply_patch", patch=PATCH),
    "shell": tool_call("shell", command=f"echo ran >> a.txt; kill -9 {os.getpid()}; sleep 1000"),
    "left": tool_call(
        "shell",
        command=f"trap '' TERM; sleep 1000 & echo $$ $! > ../left; kill -9 {os.getpid()}; sleep 1000",
        timeout_ms=600_000,
    ),
}


def die() -> None:
    if not KILLED.exists():
        KILLED.touch()
        os.kill(os.getpid(), 9)


publish = ProjectFolder.publish


def published(self, place, name) -> None:
    with (ROOT.parent / "published").open("a") as file:
        file.write(place[-1] + " ")
    if WHEN.endswith("before"):
        die()
    publish(self, place, name)
    if WHEN.endswith("after"):
        die()


ProjectFolder.publish = published
which = WHEN.split()[0]
tools = coding_tools(ROOT, family="openai" if which == "patch" else "", owned="owned" in WHEN)
model = Scripted(CALLS[which], lambda request: request.messages[-1].text)
flow = Flow("coding")
flow.agent("bot", model=model, tools=tools, output="answer")
'''


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> str:
    return await address_of(request.param, tmp_path)


async def killed(when: str, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of a run whose process was killed."""
    root, code = tmp_path / "project", tmp_path / "coding.py"
    root.mkdir()
    (root / "a.txt").write_text("one\n")
    code.write_text(FLOW)
    monkeypatch.setenv("AGENT_ROOT", str(root))
    monkeypatch.setenv("AGENT_KILLED", when)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "holdfast", "run", str(code), "--store", store, "--input", '{"prompt": "Go"}',
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    _, said = await asyncio.wait_for(process.communicate(), HANG)
    assert process.returncode == -signal.SIGKILL, said.decode()
    return root


async def resumed(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    # The module replaces it; this puts it back after the test.
    monkeypatch.setattr(ProjectFolder, "publish", ProjectFolder.publish)
    # The lease of the dead process has lapsed long ago on this clock.
    async with Holdfast(store, clock=FakeClock()) as hf:
        (row,) = await (await hf.open()).find_runs("")
        return await load(tmp_path / "coding.py").resume(row.id, on=hf)


@pytest.mark.covers("CP2-A5")
@pytest.mark.parametrize(
    ("when", "content", "published"),
    [
        ("edit before", "one one\n", ["a.txt", "a.txt"]),
        ("edit after", "one one\n", ["a.txt"]),
        ("patch before", "one\none\n", ["a.txt", "a.txt", "b.txt"]),
        ("patch after", "one\none\n", ["a.txt", "b.txt"]),
    ],
)
async def test_an_edit_is_made_once_when_its_process_is_killed(
    when: str, content: str, published: list[str], store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await killed(when, store, tmp_path, monkeypatch)
    result = await resumed(store, tmp_path, monkeypatch)
    assert result.completed
    assert not result.state["answer"].startswith("Error")
    assert (root / "a.txt").read_text() == content
    assert (root / "b.txt").exists() == when.startswith("patch")
    assert (
        sorted(each.name for each in list(root.iterdir()))
        == ["a.txt", "b.txt"][: 1 + when.startswith("patch")]
    )
    # What was changed before the kill was not changed again.
    assert (tmp_path / "published").read_text().split() == published


@pytest.mark.covers("CP2-A5")
async def test_an_edit_of_a_file_that_was_changed_after_the_kill_is_an_error_result(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await killed("edit before", store, tmp_path, monkeypatch)
    (root / "a.txt").write_text("one, by somebody else\n")
    result = await resumed(store, tmp_path, monkeypatch)
    assert result.completed
    assert "was changed by something else" in result.state["answer"]
    assert (root / "a.txt").read_text() == "one, by somebody else\n"


@pytest.mark.covers("CP2-A5")
async def test_a_command_is_in_doubt_when_its_process_is_killed(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await killed("shell", store, tmp_path, monkeypatch)
    result = await resumed(store, tmp_path, monkeypatch)
    (hold,) = result.holds
    assert hold.type == "in_doubt"
    assert (root / "a.txt").read_text() == "one\nran\n"


@pytest.mark.covers("CP2-A3")
async def test_a_command_ends_when_its_worker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await killed("left", str(tmp_path / "runs.db"), tmp_path, monkeypatch)
    command, child = (int(each) for each in (tmp_path / "left").read_text().split())
    async with asyncio.timeout(HANG):
        # It refuses SIGTERM, and has a limit of ten minutes.
        while is_alive(command) or is_alive(child):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.covers("CP2-A5")
async def test_the_model_is_told_of_a_killed_command_where_the_folder_is_the_runs_own(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = await killed("shell owned", store, tmp_path, monkeypatch)
    result = await resumed(store, tmp_path, monkeypatch)
    assert result.completed
    assert result.state["answer"] == UNKNOWN
    assert (root / "a.txt").read_text() == "one\nran\n"
