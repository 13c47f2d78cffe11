"""Stages with `tools=coding`: which tools a model gets, who approves them, and what limits it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.agents.loop_detection import WARNING
from holdfast.attractor.backends.model import ModelBackend, window_of
from holdfast.attractor.backends.tools import family_of, wanted_kits
from holdfast.attractor.providers import ModelSettings
from holdfast.frontends.dot.document import Pipeline, Stage
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import backend
from tests.attractor.run import line, run
from tests.attractor.test_hooks import calls, offered, results
from tests.cli.conftest import Cli, cli, logs

__all__ = ["cli", "logs", "provider"]
pytestmark = pytest.mark.anyio


def a_stage(root: Path, attrs: str = "") -> str:
    more = f", {attrs}" if attrs else ""
    return line(f'a [prompt="Fix it", tools=coding, cwd="{root}"{more}];', "a")


@pytest.mark.covers("CP2-A1")
@pytest.mark.parametrize(
    ("model", "edits"),
    [("gpt-9", ["apply_patch"]), ("claude-9", ["edit_file"]), ("gemini-9", ["edit_file", "list_dir"])],
)
async def test_a_stage_gets_the_coding_tools_of_its_models_family(
    hf: Holdfast, tmp_path: Path, provider: Provider, model: str, edits: list[str]
) -> None:
    provider.says(Answer("done"))
    root = tmp_path / "project"
    root.mkdir()
    allowed = backend(provider, kits=["shell", "files", "coding"])
    await run(
        hf, a_stage(root, f'llm_model="{model}", llm_provider=near'), tmp_path / "logs", backend=allowed
    )
    assert sorted(offered(provider)) == sorted(["read_file", "write_file", "shell", "grep", "glob", *edits])


def test_stage_whose_tools_are_not_allowed_here_is_refused_before_it_starts(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    Path("x.dot").write_text(line('a [prompt="Fix it", tools=coding, llm_model="gpt-9"];', "a"))
    said = cli("run", "x.dot")
    assert said.code == 2
    assert "'a' asks for tools=coding, which models may not use here" in said.err


async def test_a_stage_without_the_tools_that_it_asks_for_fails_before_its_model_is_asked(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    text = line('a [prompt="Fix it", tools=coding];', "a")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["files"]))
    assert "asks for tools=coding, which models may not use here" in result.outcome.failure_reason
    assert not provider.seen


def test_the_family_is_that_of_the_provider_or_of_the_models_name() -> None:
    assert family_of("openai", "anything") == "openai"
    assert family_of("google", "anything") == "gemini"
    assert family_of("gateway", "claude-9") == "anthropic"
    assert family_of("openai_compatible", "qwen") == ""


def test_coding_is_one_of_the_kits_that_the_operator_allows() -> None:
    pipeline = Pipeline(name="g")
    asks = Stage(id="a", attrs={"tools": "coding"})
    assert wanted_kits(asks, pipeline, ("shell", "files")) == []
    assert wanted_kits(asks, pipeline, ("shell", "coding")) == ["coding"]
    assert wanted_kits(Stage(id="a"), pipeline, ("shell", "files", "coding")) == ["coding"]
    assert wanted_kits(Stage(id="a", attrs={"tools": "files"}), pipeline, ("files", "coding")) == ["files"]


@pytest.mark.covers("CP2-A7")
async def test_a_stage_begins_with_the_instructions_of_its_project(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "AGENTS.md").write_text("Use tabs. {{goal}}")
    (root / "CLAUDE.md").write_text("Not for this one.")

    def change() -> None:
        (root / "AGENTS.md").write_text("Changed in between.")

    provider.says(
        Answer(calls=[("c1", "read_file", {"file_path": "AGENTS.md"})], before=change), Answer("done")
    )
    allowed = backend(provider, kits=["coding"])
    await run(hf, a_stage(root, 'llm_model="gpt-9", llm_provider=near'), tmp_path / "logs", backend=allowed)
    first, second = (each.json["messages"][0]["content"] for each in provider.seen)
    assert first == second
    assert "Use tabs. {{goal}}" in first
    assert "Not for this one" not in first
    assert first.index("You are a coding agent") < first.index("Use tabs") < first.index("You do one stage")
    assert results(provider) == ["1 | Changed in between."]


@pytest.mark.covers("CP2-A6")
async def test_a_stage_asks_a_person_before_it_uses_a_tool(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    provider.says(
        Answer(
            calls=[
                ("c1", "write_file", {"file_path": "a.txt", "content": "a"}),
                ("c2", "shell", {"command": "touch b.txt"}),
            ]
        )
    )
    text = a_stage(root, 'tool_approval="shell, apply_patch"')
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert result.status == "waiting"
    assert (root / "a.txt").exists()
    assert not (root / "b.txt").exists()
    (hold,) = await (await hf.service()).holds(result.run_id)
    assert hold.type == "approval"
    assert "touch b.txt" in hold.prompt


async def test_an_approval_of_an_unknown_tool_fails_the_stage_before_the_model_is_asked(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    text = a_stage(tmp_path, "tool_approval=publish")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert result.status == "fail"
    assert "no tool 'publish'" in result.outcome.failure_reason
    assert provider.seen == []


async def test_commands_of_a_coding_stage_run_in_the_operators_sandbox(
    hf: Holdfast, tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_TOOL_SANDBOX", "/usr/bin/env SANDBOXED=yes")
    provider.says(calls("shell", command="echo $SANDBOXED"), Answer("done"))
    await run(hf, a_stage(tmp_path), tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert results(provider) == ["yes\n[exit code 0]"]


@pytest.mark.covers("CP2-A9")
async def test_a_stage_in_a_loop_fails_and_is_not_tried_again(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    again = calls("read_file", file_path="missing.txt")
    provider.says(*[again] * 20)
    text = a_stage(tmp_path, "max_retries=3")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert result.status == "fail"
    assert "repeats the same calls" in result.outcome.failure_reason
    assert result.context["failure_class"] == "loop"
    assert len(provider.seen) == 20
    assert str(provider.seen[-1].json).count(WARNING) == 1


@pytest.mark.covers("CP2-A10")
def test_the_window_of_a_stages_model_is_that_of_the_catalogue() -> None:
    pytest.importorskip("genai_prices")
    assert (window_of("anthropic", "claude-opus-5-5", 1_790_000_000_000_000) or 0) > 100_000
    assert window_of("anthropic", "no-such-model", 1_790_000_000_000_000) is None
    assert window_of("", "claude-opus-5-5", 1_790_000_000_000_000) is None


@pytest.mark.covers("CP2-A10")
async def test_a_stage_has_200_turns_unless_it_says_otherwise(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    assert ModelSettings().max_turns == 200
    assert ModelBackend(max_turns=0)._max_turns == 0

    def call(body: Any) -> Answer:
        return calls("read_file", file_path=f"missing-{len(body['messages'])}.txt")

    provider.says(*[call] * 3)
    text = a_stage(tmp_path, "max_turns=3, max_retries=2")
    result = await run(hf, text, tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert "took 3 turns" in result.outcome.failure_reason
    assert result.context["failure_class"] == "limit"
    assert len(provider.seen) == 3


@pytest.mark.covers("CP2-A2")
async def test_the_whole_of_a_long_result_is_a_file_of_the_run_directory(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "big.txt").write_text("x" * 60_000)
    provider.says(calls("read_file", file_path="big.txt"), Answer("done"))
    result = await run(hf, a_stage(root), tmp_path / "logs", backend=backend(provider, kits=["coding"]))
    assert result.status == "success"
    (shown,) = results(provider)
    assert "all of it is the artifact a.1.agent.1.tool.0.read_file" in shown
    (file,) = (tmp_path / "logs/artifacts").iterdir()
    assert "x" * 60_000 in file.read_text()
