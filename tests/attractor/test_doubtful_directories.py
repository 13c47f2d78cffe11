"""Directories that say too little, or that two runs continue at once: nothing runs twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor import command_run, stage_effects
from holdfast.attractor.continuation import write_intent
from holdfast.attractor.directory_owner import take_over
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner
from holdfast.errors import InputError
from holdfast.store.rows import RunFilter
from tests.attractor.run import line
from tests.attractor.test_continue_elsewhere import WAITS, counted, left_running, ran
from tests.attractor.test_resume_directory import Script, elsewhere, write_checkpoint

__all__ = ["elsewhere"]
pytestmark = pytest.mark.anyio

GATE = line("a [goal_gate=true, retry_target=a, max_visits=3];", "a")


@pytest.mark.covers("CP2-D7")
@pytest.mark.parametrize(
    ("outcome", "repeated"), [("fail", ["a"]), ("unknown", ["a"]), ("success", []), (None, ["a"])]
)
async def test_goal_gate_that_another_runner_did_not_meet_is_tried_again(
    elsewhere: Holdfast, tmp_path: Path, outcome: str | None, repeated: list[str]
) -> None:
    """Its checkpoint is at the exit, and lists no gates."""
    known = {"start": "success", "done": "success"} | ({} if outcome is None else {"a": outcome})
    visited = ["start", "a", "done"]
    write_checkpoint(tmp_path, current_node="done", completed_nodes=visited, node_outcomes=known)
    script = Script()
    await Runner(elsewhere, backend=script).resume(tmp_path, source=GATE)
    assert script.trace == repeated


@pytest.mark.covers("CP2-D8")
async def test_checkpoint_that_is_nested_too_deep_is_refused(elsewhere: Holdfast, tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    (tmp_path / "checkpoint.json").write_text(f'{{"current_node": "a", "context": {{"a": {deep}}}}}')
    with pytest.raises(InputError, match=r"checkpoint\.json is not JSON"):
        await Runner(elsewhere).resume(tmp_path, source=GATE)


async def test_verdict_that_is_nested_too_deep_fails_its_stage(hf: Holdfast, tmp_path: Path) -> None:
    deep = "[" * 100_000 + "]" * 100_000

    def answer(prompt: str) -> str:
        (tmp_path / "a/status.json").write_text(
            f'{{"outcome": "success", "context_updates": {{"a": {deep}}}}}'
        )
        return "done"

    result = await Runner(hf, backend=answer, logs_root=tmp_path).run(line("a;", "a"))
    assert result.outcome.failure_reason.startswith("status.json is not JSON")


@pytest.mark.covers("CP2-D3")
@pytest.mark.parametrize("damage", ["cut", "removed"])
async def test_directory_whose_intent_cannot_be_read_is_refused(
    hf: Holdfast, elsewhere: Holdfast, tmp_path: Path, damage: str
) -> None:
    """Else its command would run again."""
    logs = tmp_path / "logs"
    await left_running(Runner(hf, logs_root=logs), WAITS, lambda: ran(logs) == ["t"])
    intent = logs / "t/tool-1-1-1/intent.json"
    if damage == "cut":
        intent.write_text(intent.read_text()[:20])
    else:
        intent.unlink()
    (logs / "go").touch()
    with pytest.raises(InputError, match=r"intent\.json cannot be read"):
        await Runner(elsewhere).resume(logs)
    assert ran(logs) == ["t"]
    assert not await (await elsewhere.service()).store.list_runs(RunFilter(), after=None, limit=9)


@pytest.mark.covers("CP2-D4")
@pytest.mark.parametrize("kind", ["command", "handler"])
async def test_run_whose_directory_is_taken_over_as_it_starts_an_effect_does_not_start_it(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Another run has looked for intents before this one wrote its own."""
    calls: list[str] = []

    class Acts:
        def execute(self, node: Any, context: Any, graph: Any, logs_root: Any) -> StageOutcome:
            calls.append(node.id)
            return StageOutcome()

    def write_and_lose(folder: Path, intent: Any) -> None:
        write_intent(folder, intent)
        take_over(tmp_path, "another run", intent.run)

    for module in (command_run, stage_effects):
        monkeypatch.setattr(module, "write_intent", write_and_lose)
    text = line(counted("t") if kind == "command" else "t [type=acts];", "t")
    found = await Runner(hf, registry=HandlerRegistry({"acts": Acts()}), logs_root=tmp_path).run(text)
    assert found.status == "cancelled"
    assert (ran(tmp_path), calls) == ([], [])
