"""The coding agent does the same with each family of models in its own protocol: the matrix and the smoke
test of the public specification (CAL 9.12, 9.13), over a real HTTP server with scripted answers.
`tests/agents/test_checklists.py` lists them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.agents.loop_detection import WARNING
from holdfast.attractor import PipelineResult
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.agents.test_provider_parity import results_in
from tests.attractor.models import backend, said
from tests.attractor.run import line, run

__all__ = ["provider"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-P1")]

FAMILIES = {"openai": ("new", "gpt-9"), "anthropic": ("far", "claude-9"), "gemini": ("star", "gemini-9")}
PATHS = {"openai": "/v1/responses", "anthropic": "/v1/messages", "gemini": ":streamGenerateContent"}


class Coder:
    """A stage of one family in a project of its own."""

    def __init__(self, family: str, hf: Holdfast, provider: Provider, folder: Path) -> None:
        self.family = family
        self.hf = hf
        self.provider = provider
        self.root = folder / "project"
        self.root.mkdir()
        self._folder = folder

    async def does(self, *turns: Any, attrs: str = "") -> PipelineResult:
        self.provider.says(*turns)
        name, model = FAMILIES[self.family]
        more = f", {attrs}" if attrs else ""
        chosen = f'llm_provider={name}, llm_model="{model}"'
        stage = f'a [prompt="Go", tools=coding, cwd="{self.root}", {chosen}{more}];'
        asks = backend(self.provider, kits=["coding"])
        result = await run(self.hf, line(stage, "a"), self._folder / "logs", backend=asks)
        assert result.succeeded, result.outcome
        assert all(PATHS[self.family] in seen.path for seen in self.provider.seen)
        return result

    def edit(self, path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
        """In the format that the family knows."""
        if self.family != "openai":
            return "edit_file", {"file_path": path, "old_string": old, "new_string": new}
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
        return "apply_patch", {"patch": patch}

    def results(self) -> list[str]:
        """Of the calls before the last request."""
        return results_in(self.provider.seen[-1])

    def told(self) -> str:
        """All that the last request said, without instructions and tools."""
        return str(said(self.provider.seen[-1]))

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def calls(*made: tuple[str, dict[str, Any]]) -> Answer:
    return Answer(calls=[(f"c{number}", name, given) for number, (name, given) in enumerate(made)])


@pytest.fixture(params=sorted(FAMILIES))
def coder(request: pytest.FixtureRequest, hf: Holdfast, tmp_path: Path, provider: Provider) -> Coder:
    return Coder(request.param, hf, provider, tmp_path)


async def test_a_file_is_created_read_edited_and_run(coder: Coder) -> None:
    await coder.does(
        calls(("write_file", {"file_path": "hello.py", "content": "print('Hello')\n"})),
        calls(("read_file", {"file_path": "hello.py"})),
        calls(coder.edit("hello.py", "print('Hello')", "print('Hello'); print('Goodbye')")),
        calls(("shell", {"command": "python3 hello.py", "timeout_ms": 60_000})),
        Answer("done"),
    )
    assert coder.text("hello.py") == "print('Hello'); print('Goodbye')\n"
    assert coder.results()[1] == "1 | print('Hello')"
    assert coder.results()[3] == "Hello\nGoodbye\n[exit code 0]"


async def test_several_files_are_edited_in_one_reply(coder: Coder) -> None:
    for name in ("a.txt", "b.txt"):
        (coder.root / name).write_text("one\n")
    await coder.does(calls(coder.edit("a.txt", "one", "1"), coder.edit("b.txt", "one", "2")), Answer("done"))
    assert (coder.text("a.txt"), coder.text("b.txt")) == ("1\n", "2\n")


async def test_a_command_that_takes_too_long_is_a_result(coder: Coder) -> None:
    await coder.does(calls(("shell", {"command": "echo on; sleep 1000", "timeout_ms": 200})), Answer("done"))
    (text,) = coder.results()
    assert text.startswith("on\n")
    assert "took longer than 0.2 s" in text


async def test_files_are_found_by_name_and_by_content(coder: Coder) -> None:
    (coder.root / "src").mkdir()
    (coder.root / "src/a.py").write_text("needle\n")
    await coder.does(
        calls(("grep", {"pattern": "need.e"}), ("glob", {"pattern": "**/*.py"})),
        Answer("done"),
    )
    assert coder.results() == ["src/a.py:1:needle", "src/a.py"]


async def test_a_long_result_is_cut_and_whole_in_the_run_directory(coder: Coder) -> None:
    (coder.root / "big.txt").write_text("x" * 100_000)
    result = await coder.does(calls(("read_file", {"file_path": "big.txt"})), Answer("done"))
    (text,) = coder.results()
    assert "characters are left out" in text
    assert len(text) < 51_000
    whole = (result.logs_root / "artifacts/a.1.agent.1.tool.0.read_file.json").read_text()
    assert "x" * 100_000 in whole


async def test_a_message_of_a_person_changes_the_task(coder: Coder) -> None:
    async def steer() -> None:
        (row,) = await (await coder.hf.open()).find_runs("")
        await (await coder.hf.service()).steer(row.id, "Just one endpoint.")

    def first(_body: Any) -> Answer:
        return calls(("shell", {"command": "echo begun"}))

    await coder.does(first, _after(steer, calls(("glob", {"pattern": "*"}))), Answer("done"))
    assert "Just one endpoint." in coder.told()


def _after(work: Callable[[], Any], answer: Answer) -> Answer:
    answer.before = work
    return answer


async def test_a_loop_is_warned_of(coder: Coder) -> None:
    again = calls(("read_file", {"file_path": "missing.txt"}))
    await coder.does(*[again] * 10, Answer("I give up."))
    assert WARNING in coder.told()


async def test_a_failed_call_is_corrected(coder: Coder) -> None:
    (coder.root / "a.txt").write_text("one\n")
    await coder.does(
        calls(coder.edit("a.txt", "two", "2"), ("hammer", {})),
        calls(coder.edit("a.txt", "one", "1")),
        Answer("done"),
    )
    failed, unknown, _ = coder.results()
    assert failed.startswith("Error")
    assert "there is no tool 'hammer'" in unknown
    assert coder.text("a.txt") == "1\n"


async def test_the_effort_of_a_stage_reaches_its_model(coder: Coder) -> None:
    await coder.does(Answer("done"), attrs="reasoning_effort=low")
    (seen,) = coder.provider.seen
    kept = ("reasoning", "output_config", "generationConfig")
    assert "low" in str({key: seen.json[key] for key in kept if key in seen.json}).lower()


async def test_a_task_takes_several_steps(coder: Coder) -> None:
    """It reads, sees in what it read which file to change, changes that one and checks it."""
    (coder.root / "notes.txt").write_text("The fault is in add.py.\n")
    (coder.root / "add.py").write_text("print(1 - 1)\n")

    def reads_on(_: Any) -> Answer:
        named = coder.results()[-1].split()[-1].rstrip(".\n")
        return calls(("read_file", {"file_path": named}))

    await coder.does(
        calls(("read_file", {"file_path": "notes.txt"})),
        reads_on,
        calls(coder.edit("add.py", "print(1 - 1)", "print(1 + 1)")),
        calls(("shell", {"command": "python3 add.py", "timeout_ms": 60_000})),
        Answer("done"),
    )
    assert coder.results()[-1] == "2\n[exit code 0]"


async def test_reads_of_one_reply_come_back_in_the_order_of_their_calls(coder: Coder) -> None:
    names = ["c.txt", "a.txt", "b.txt"]
    for name in names:
        (coder.root / name).write_text(f"{name}\n")
    await coder.does(calls(*(("read_file", {"file_path": name}) for name in names)), Answer("done"))
    assert coder.results() == [f"1 | {name}" for name in names]


async def test_each_family_is_offered_its_own_way_to_edit(coder: Coder) -> None:
    await coder.does(Answer("done"))
    tools = str(coder.provider.seen[0].json["tools"])
    assert ("apply_patch" in tools) == (coder.family == "openai")
    assert ("edit_file" in tools) == (coder.family != "openai")
    assert ("list_dir" in tools) == (coder.family == "gemini")


async def test_a_command_has_the_default_limit_of_its_family(coder: Coder) -> None:
    await coder.does(Answer("done"))
    tools = str(coder.provider.seen[0].json["tools"])
    assert ("Default: 120 s" if coder.family == "anthropic" else "Default: 10 s") in tools
