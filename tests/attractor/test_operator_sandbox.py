"""The operator's sandbox: every command of a document or a model runs inside of it, or does not run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.backends.agents.backend import AgentBackend
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.runner import Runner
from holdfast.errors import RequirementsMissingError
from holdfast.types.ids import new_run_id
from tests.agents.conftest import provider
from tests.agents.provider import Provider
from tests.attractor.fake_agents import FakeAgents, agents, codex
from tests.attractor.models import backend
from tests.attractor.repositories import made
from tests.attractor.run import dot, either, line, run
from tests.attractor.test_hooks import Answer, calls

__all__ = ["agents", "provider"]
pytestmark = pytest.mark.anyio

# Writes down its words, and runs what comes after `--`.
WRAPPER = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word" >>"{0}"; done
printf '\\n' >>"{0}"
while [ "$1" != -- ]; do shift; done
shift
INSIDE=yes exec "$@"
"""


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a sandbox writes down with which words it was called."""
    program, words = tmp_path / "box", tmp_path / "words"
    program.write_text(WRAPPER.format(words))
    program.chmod(0o755)
    options = "--bind {workdir} --logs={logs} --stage {stage_dir} --git {repository}"
    monkeypatch.setenv("HOLDFAST_TOOL_SANDBOX", f"{program} {options} --")
    return words


def called(words: Path) -> list[list[str]]:
    lines = words.read_text().split("\n") if words.exists() else []
    return [each.split("\0")[:-1] for each in lines if each]


async def test_command_runs_in_the_sandbox_with_the_folders_of_its_stage(
    hf: Holdfast, tmp_path: Path, seen: Path
) -> None:
    work, logs = tmp_path / "a folder", tmp_path / "logs"
    work.mkdir()
    text = line('t [shape=parallelogram, tool_command="echo $INSIDE; pwd; exit 4"];', "t")
    found = await run(hf, text.replace('goal="ship it"', f'goal=g, workdir="{work}"'), logs)
    assert found.context["tool.output"].splitlines() == ["yes", str(work)]
    assert found.context["tool.exit_code"] == 4
    words = called(seen)
    assert len(words) == 1
    places = ["--bind", str(work), f"--logs={logs}", "--stage", str(logs / "t"), "--git", str(work), "--"]
    assert words[0][:8] == places
    assert words[0][8] == "/bin/sh"


async def test_branch_has_the_folder_of_its_worktree_and_of_the_repository(
    hf: Holdfast, tmp_path: Path, seen: Path
) -> None:
    repo, logs = made(tmp_path / "repo"), tmp_path / "logs"
    text = dot(
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon];"
        'a [shape=parallelogram, tool_command="true"]; b [shape=parallelogram, tool_command="true"];',
        "start -> fan; fan -> a -> join; fan -> b -> join; join -> done",
        f'goal=g, workdir="{repo}"',
    )
    assert (await run(hf, text, logs)).succeeded
    assert sorted(each[1] for each in called(seen)) == [
        str(logs / "worktrees/fan.1[0]"),
        str(logs / "worktrees/fan.1[1]"),
    ]
    assert {each[6] for each in called(seen)} == {str(repo / ".git")}


async def test_agents_run_in_the_sandbox(
    hf: Holdfast, tmp_path: Path, seen: Path, agents: FakeAgents
) -> None:
    agents.plays("codex", codex("Done."))
    found = await run(hf, line("a [prompt=x];", "a"), tmp_path / "logs", backend=AgentBackend("codex"))
    assert found.succeeded, found.outcome
    assert len(called(seen)) == 1
    assert agents.calls("codex")[0]["env"]["INSIDE"] == "yes"
    answered = await run(
        hf, line("a [prompt=x];", "a"), tmp_path / "more", backend=CommandBackend("sh -c 'echo $INSIDE'")
    )
    assert answered.context["last_response"] == "yes"
    assert len(called(seen)) == 2


async def test_shell_and_hooks_of_a_model_run_in_the_sandbox(
    hf: Holdfast, tmp_path: Path, seen: Path, provider: Provider
) -> None:
    provider.says(calls("shell", command="echo $INSIDE"), Answer("done"))
    hooked = tmp_path / "hooked"
    text = line(f'a [tool_hooks.pre="echo $INSIDE >{hooked}"];', "a")
    found = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["shell"]))
    assert found.succeeded
    assert hooked.read_text() == "yes\n"
    assert "yes" in json.dumps(provider.seen[-1].json)
    assert len(called(seen)) == 2


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("/nowhere/box --", "names /nowhere/box, which does not exist here"),
        ("env {home} --", "has the unknown field {home}"),
        ("env 'x", "cannot be parsed"),
    ],
)
async def test_no_command_runs_without_its_sandbox(
    hf: Holdfast,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: Provider,
    setting: str,
    why: str,
) -> None:
    monkeypatch.setenv("HOLDFAST_TOOL_SANDBOX", setting)
    ran, bad = tmp_path / "ran", tmp_path / "bad"
    stages = f't [shape=parallelogram, tool_command="touch {ran}"];'
    stages += f'f [shape=parallelogram, tool_command="touch {bad}"];'
    runner, run_id = Runner(hf, logs_root=tmp_path / "logs"), new_run_id()
    with pytest.raises(RequirementsMissingError, match=re.escape(why)):
        await runner.run(dot(stages, either("t", "f")), run_id=run_id)
    asked = line("a;", "a")
    provider.says(calls("shell", command=f"touch {ran}"), Answer("done"))
    with pytest.raises(RequirementsMissingError, match="setting:tool-sandbox"):
        await run(hf, asked, tmp_path / "more", backend=backend(provider, kits=["shell"]))
    assert not provider.seen
    assert not ran.exists()
    # A fault of the worker is no outcome of the stage: its fail edge is not taken, and the run continues.
    monkeypatch.delenv("HOLDFAST_TOOL_SANDBOX")
    assert (await runner.resume(run_id)).succeeded
    assert (ran.exists(), bad.exists()) == (True, False)


async def test_hook_without_its_sandbox_refuses_the_call(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: Provider
) -> None:
    monkeypatch.setenv("HOLDFAST_TOOL_SANDBOX", "/nowhere/box")
    provider.says(calls("write_file", path="made", text="x"), Answer("done"))
    text = line(f'a [tool_hooks.pre="touch {tmp_path}/ran"];', "a", graph=f'goal=g, workdir="{tmp_path}"')
    await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["files"]))
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / "ran").exists()


def is_allowed() -> bool:
    words = ["bwrap", "--ro-bind", "/", "/", "true"]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_bubblewrap_keeps_a_command_inside_its_folder(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a /dev of its own: the folder of the test may be in /dev/shm, which that would replace.
    words = "bwrap --ro-bind / / --bind {workdir} {workdir} --bind {logs} {logs}"
    if not is_allowed():
        pytest.skip("this kernel does not allow it")
    monkeypatch.setenv("HOLDFAST_TOOL_SANDBOX", words)
    work = tmp_path / "work"
    work.mkdir()
    text = line(f't [shape=parallelogram, tool_command="touch in; touch {tmp_path}/out"];', "t")
    found = await run(hf, text.replace('goal="ship it"', f'goal=g, workdir="{work}"'), tmp_path / "logs")
    assert found.status == "fail"
    assert (work / "in").exists()
    assert not (tmp_path / "out").exists()
