"""What a handler or a tool of a model did is not repeated in silence where the directory is continued."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import Agent, Holdfast, Scripted, tool, tool_call
from holdfast.attractor.backends.model import ModelBackend
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from tests.agents.provider import Answer, Provider, a_provider
from tests.attractor.models import backend
from tests.attractor.repositories import files, git, made, refs
from tests.attractor.run import dot, line
from tests.attractor.test_continue_elsewhere import left_running, ran
from tests.attractor.test_resume_directory import elsewhere

__all__ = ["elsewhere"]
pytestmark = pytest.mark.anyio
AGAIN, DONE, FAILED = "run again", "it succeeded", "it failed"


def call_of(name: str, **arguments: Any) -> Answer:
    return Answer(calls=[("c", name, arguments)])


async def answered(there: Holdfast, runner: Runner, moved: Path, answer: str) -> str:
    """The status after the question of the continued run has this answer."""
    found = await runner.resume(moved)
    assert found.status == "waiting"
    assert "how it ended is not known" in found.holds[0].prompt
    await (await there.service()).answer(found.holds[0].id, answer)
    return (await runner.resume(found.run_id)).status


async def left_at_the_second_answer(hf: Holdfast, provider: Provider, logs: Path, *turns: Answer) -> None:
    """A run that ends while its model thinks, after the calls of `turns`."""

    def says_nothing(_: Any) -> Any:
        return Answer(text="late", stall=0)

    provider.says(*turns, says_nothing)
    runner = Runner(hf, backend=backend(provider, kits=["coding"]), logs_root=logs)
    text = line('fix [prompt="fix it", tools=coding];', "fix", graph=f'workdir="{logs.parent / "project"}"')
    await left_running(runner, text, lambda: len(provider.seen) == len(turns) + 1)


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize(
    ("answer", "times", "ends"), [(DONE, 1, "success"), (FAILED, 1, "fail"), (AGAIN, 2, "success")]
)
async def test_commands_of_a_model_are_asked_about_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, answer: str, times: int, ends: str
) -> None:
    logs, moved, project = tmp_path / "logs", tmp_path / "moved", tmp_path / "project"
    project.mkdir()
    command = call_of("shell", command="echo ran >> ran")
    async with a_provider() as provider:
        await left_at_the_second_answer(hf, provider, logs, command)
        shutil.copytree(logs, moved)
        provider.turns.clear()
        provider.says(command, Answer(text="done"))
        runner = Runner(elsewhere, backend=backend(provider, kits=["coding"]))
        assert await answered(elsewhere, runner, moved, answer) == ends
    assert ran(project) == ["ran"] * times


async def test_edits_are_asked_about_and_reads_are_not(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "a").write_text("a\n")
    edit = call_of("edit_file", file_path="a", old_string="a", new_string="aa")
    statuses: list[str] = []
    for number, first in enumerate((call_of("read_file", file_path="a"), edit)):
        logs, moved = tmp_path / f"logs{number}", tmp_path / f"moved{number}"
        async with a_provider() as provider:
            await left_at_the_second_answer(hf, provider, logs, first)
            shutil.copytree(logs, moved)
            provider.turns.clear()
            provider.says(Answer(text="done"))
            runner = Runner(elsewhere, backend=backend(provider, kits=["coding"]))
            statuses.append((await runner.resume(moved)).status)
    assert statuses == ["success", "waiting"]


class Announce:
    """Writes a line each time, and never ends if it is told so."""

    def __init__(self, project: Path, *, ends: bool) -> None:
        self._project = project
        self._ends = ends

    async def execute(self, node: Any, context: Any, graph: Any, logs_root: Path) -> StageOutcome:
        with (self._project / "ran").open("a") as file:
            file.write("ran\n")
        if not self._ends:
            await asyncio.Event().wait()
        return StageOutcome()


@pytest.mark.parametrize(
    ("more", "asks"), [("", True), (", effect=read", False), (", in_doubt=retry", False)]
)
async def test_a_handler_of_ones_own_is_asked_about_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, more: str, asks: bool
) -> None:
    logs, moved = tmp_path / "logs", tmp_path / "moved"
    stuck = HandlerRegistry({"announce": Announce(tmp_path, ends=False)})
    source = line(f"tell [type=announce{more}];", "tell")
    await left_running(Runner(hf, registry=stuck, logs_root=logs), source, lambda: ran(tmp_path) == ["ran"])
    shutil.copytree(logs, moved)
    there = Runner(elsewhere, registry=HandlerRegistry({"announce": Announce(tmp_path, ends=True)}))
    if asks:
        assert await answered(elsewhere, there, moved, DONE) == "success"
    else:
        assert (await there.resume(moved)).succeeded
    assert ran(tmp_path) == ["ran"] * (1 if asks else 2)


async def test_files_of_a_worktree_are_kept_if_a_person_says_that_the_stage_succeeded(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs, repo = tmp_path / "logs", made(tmp_path / "repo")
    stages = (
        "fan [shape=component, workspace=worktree]; join [shape=tripleoctagon];"
        'a [prompt="A", tools=coding]; b [shape=parallelogram, tool_command="true"];'
    )
    links = "start -> fan; fan -> a -> join; fan -> b -> join; join -> done"
    text = dot(stages, links, f'goal="g", workdir="{repo}"')
    async with a_provider() as provider:
        provider.says(call_of("write_file", file_path="made.txt", content="made"), Answer(stall=0))
        runner = Runner(hf, backend=backend(provider, kits=["coding"]), logs_root=logs)
        await left_running(runner, text, lambda: len(provider.seen) == 2)
        there = Runner(elsewhere, backend=backend(provider, kits=["coding"]))
        assert await answered(elsewhere, there, logs, DONE) == "success"
    assert len(provider.seen) == 2
    (run,) = {
        name.split("/")[2]
        for name in git(repo, "for-each-ref", "--format=%(refname)", "refs/holdfast/*/result").split()
    }
    assert files(repo, refs(repo, run)["result"]) == {"base.txt": "one", "made.txt": "made"}


@pytest.mark.covers("CP2-D3")
async def test_a_function_is_asked_about_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs, moved = tmp_path / "logs", tmp_path / "moved"
    ends: list[bool] = []

    async def answer(prompt: str) -> str:
        with (tmp_path / "ran").open("a") as file:
            file.write("ran\n")
        if not ends:
            await asyncio.Event().wait()
        return "done"

    source = line('tell [prompt="tell it"];', "tell")
    await left_running(Runner(hf, backend=answer, logs_root=logs), source, lambda: ran(tmp_path) == ["ran"])
    shutil.copytree(logs, moved)
    ends.append(True)
    assert await answered(elsewhere, Runner(elsewhere, backend=answer), moved, DONE) == "success"
    assert ran(tmp_path) == ["ran"]


def a_helper(folder: Path, *, ends: bool = True) -> Any:
    """An agent that is a tool, and that has a tool which changes something."""

    @tool
    async def announce(text: str) -> str:
        """Announces it."""
        with (folder / "ran").open("a") as file:
            file.write("ran\n")
        if not ends:
            await asyncio.Event().wait()
        return "announced"

    inner = Scripted(tool_call("announce", text="x"), lambda request: request.messages[-1].text)
    return Agent("helper", model=inner, tools=[announce]).as_tool()


@pytest.mark.covers("CP2-D3")
async def test_tools_of_an_agent_that_is_a_tool_are_asked_about_on_another_store(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path
) -> None:
    logs, moved = tmp_path / "logs", tmp_path / "moved"
    source = line('tell [prompt="tell it"];', "tell")

    stuck = a_helper(tmp_path, ends=False)
    first = ModelBackend(model=Scripted(tool_call("helper", task="x"), "told"), tools=[stuck])
    begun = Runner(hf, backend=first, logs_root=logs)
    await left_running(begun, source, lambda: ran(tmp_path) == ["ran"])
    shutil.copytree(logs, moved)
    second = ModelBackend(model=Scripted("told"), tools=[a_helper(tmp_path)])
    assert await answered(elsewhere, Runner(elsewhere, backend=second), moved, DONE) == "success"
    assert ran(tmp_path) == ["ran"]


async def test_hooks_and_approvals_reach_the_tools_of_an_agent_that_is_a_tool(
    hf: Holdfast, tmp_path: Path
) -> None:
    def asks(*answers: Any) -> ModelBackend:
        return ModelBackend(model=Scripted(*answers), tools=[a_helper(tmp_path)])

    hooked = line('tell [prompt="tell it", tool_hooks.pre="exit 3"];', "tell")
    backend = asks(tool_call("helper", task="x"), lambda request: request.messages[-1].text)
    result = await Runner(hf, backend=backend, logs_root=tmp_path / "hooked").run(hooked)
    assert "the call was not made: tool_hooks.pre ended with exit code 3" in result.context["last_response"]
    for number, names in enumerate(("all", "announce")):
        approved = line(f'tell [prompt="tell it", tool_approval={names}];', "tell")
        runner = Runner(
            hf, backend=asks(tool_call("helper", task="x"), "done"), logs_root=tmp_path / str(number)
        )
        assert (await runner.run(approved)).status == "waiting"
    assert ran(tmp_path) == []
