"""The coding agent does the same with each family of models: the matrix of the reference (CAL 9.12, 9.13),
over a real HTTP server with scripted answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.agents.loop_detection import WARNING
from holdfast.attractor import PipelineResult
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider, Seen
from tests.attractor.models import backend
from tests.attractor.run import line, run

__all__ = ["provider"]
pytestmark = pytest.mark.anyio

FAMILIES = {"openai": ("near", "gpt-9"), "anthropic": ("far", "claude-9"), "gemini": ("near", "gemini-9")}


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
        return result

    def edit(self, path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
        """In the format that the family knows."""
        if self.family != "openai":
            return "edit_file", {"file_path": path, "old_string": old, "new_string": new}
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch"
        return "apply_patch", {"patch": patch}

    def results(self) -> list[str]:
        """Of the calls before the last answer."""
        return [text for seen in self.provider.seen[-1:] for text in tool_results(seen)]

    def text(self, path: str) -> str:
        return (self.root / path).read_text()


def tool_results(seen: Seen) -> list[str]:
    found: list[str] = []
    for message in seen.json["messages"]:
        if message["role"] == "tool":
            found.append(message["content"])
        elif isinstance(message["content"], list):
            blocks = [each for each in message["content"] if each.get("type") == "tool_result"]
            found += [_text(each["content"]) for each in blocks]
    return found


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(each.get("text", "") for each in content)


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
    assert "Just one endpoint." in str(coder.provider.seen[-1].json["messages"])


def _after(work: Callable[[], Any], answer: Answer) -> Answer:
    answer.before = work
    return answer


async def test_a_loop_is_warned_of(coder: Coder) -> None:
    again = calls(("read_file", {"file_path": "missing.txt"}))
    await coder.does(*[again] * 10, Answer("I give up."))
    assert WARNING in str(coder.provider.seen[-1].json["messages"])


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
    assert "low" in str({k: v for k, v in coder.provider.seen[0].json.items() if k != "messages"})
