"""A failure that is reported in another place or under another name than asked for stays a failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.backends.cli import CommandBackend
from holdfast.attractor.outcome import StageOutcome
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import backend as model_backend
from tests.attractor.run import dot, line, run

__all__ = ["provider"]
pytestmark = [pytest.mark.anyio, pytest.mark.covers("CP2-V4")]

RANKED = dot(
    'fan [shape=component]; x; y; best [shape=tripleoctagon, prompt="Which?"];',
    "start -> fan; fan -> x; fan -> y; x -> best; y -> best; best -> done",
)
RED = {"outcome": "fail", "failure_reason": "red"}


def block(language: str = "json", **fields: Any) -> str:
    return f"```{language}\n{json.dumps(fields)}\n```"


@pytest.mark.parametrize(
    ("returned", "outcome"),
    [
        ({"status": "fail", "notes": "red"}, "fail"),
        (f"No.\n{block(status='failed', notes='red')}", "fail"),
        (json.dumps({"status": "error"}), "fail"),
        (f"{block(**RED)}\nThe change:\n```diff\n-a\n```", "fail"),
        (f"No.\n{block('json5', **RED)}", "fail"),
        (f"No.\n{json.dumps(RED)}", "fail"),
        (False, "fail"),
        (ValueError("red"), "fail"),
        # Other fields that are called status, and examples, are no verdicts.
        ({"status": "fail", "ticket": 7}, "success"),
        (f"It is:\n{block(status='open')}", "success"),
        (f"{block(**RED)}\nNow it is repaired.\n{block(outcome='success')}", "success"),
        (f"{block(**RED)}\n{block(outcome='success')}\n```diff\n-a\n```", "success"),
    ],
)
async def test_a_failure_is_one_wherever_it_is_reported(
    hf: Holdfast, tmp_path: Path, returned: Any, outcome: str
) -> None:
    result = await run(hf, line("a [verdict=true];", "a"), tmp_path, backend=lambda prompt: returned)
    assert result.node_outcomes["a"] == outcome


async def test_a_success_inside_an_answer_is_no_proof(hf: Holdfast, tmp_path: Path) -> None:
    answer = f"The form is {block(outcome='success')}\nI did not look.\n```diff\n-a\n```"
    text = line("a [goal_gate=true, auto_status=false];", "a")
    result = await run(hf, text, tmp_path, backend=lambda prompt: answer)
    assert result.status == "fail"


async def test_a_block_inside_an_answer_that_no_verdict_was_asked_of_is_an_example(
    hf: Holdfast, tmp_path: Path
) -> None:
    answer = f"For example:\n{block(**RED)}\nThen:\n```sh\nls\n```"
    result = await run(hf, line("a;", "a"), tmp_path, backend=lambda prompt: answer)
    assert result.node_outcomes["a"] == "success"


@pytest.mark.parametrize(
    "said",
    [
        {"type": "result", "subtype": "error_max_turns", "is_error": True},
        {"type": "result", "is_error": True, "result": "no\n"},
    ],
)
async def test_an_error_event_without_text_or_before_other_lines_is_a_failure(
    hf: Holdfast, tmp_path: Path, said: dict[str, Any]
) -> None:
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\ncat >/dev/null\ncat <<'E'\n{json.dumps(said)}\nE\necho bye\n")
    agent.chmod(0o755)
    result = await run(hf, line("a;", "a"), tmp_path / "logs", backend=CommandBackend(str(agent)))
    assert result.outcome.failure_reason.startswith("the agent reported a failure: ")


@pytest.mark.parametrize(
    "ranking", [RED, f"None.\n{block(**RED)}", StageOutcome(status="retry", failure_reason="red")]
)
async def test_a_ranking_that_reports_a_failure_is_one(hf: Holdfast, tmp_path: Path, ranking: Any) -> None:
    def answer(node: Any, prompt: str) -> Any:
        return ranking if node.id == "best" else "ok"

    result = await run(hf, RANKED, tmp_path, backend=answer)
    assert result.node_outcomes["best"] == "fail"
    assert result.outcome.failure_reason == "red"


async def test_a_ranking_by_a_model_that_reports_a_failure_is_one(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    provider.says(Answer("x"), Answer("y"), Answer(f"None.\n{block(**RED)}"))
    result = await run(hf, RANKED, tmp_path, backend=model_backend(provider))
    assert result.node_outcomes["best"] == "fail"


async def test_a_ranking_command_reports_its_failure_by_its_file(hf: Holdfast, tmp_path: Path) -> None:
    agent = tmp_path / "agent"
    file = '"$ATTRACTOR_STAGE_DIR/status.json"'
    agent.write_text(
        f"#!/bin/sh\ncat >/dev/null\n[ $HOLDFAST_NODE != best ] || echo '{json.dumps(RED)}' >{file}\necho x\n"
    )
    agent.chmod(0o755)
    result = await run(hf, RANKED, tmp_path / "logs", backend=CommandBackend(str(agent)))
    assert result.node_outcomes["best"] == "fail"


async def test_a_function_that_ranks_keeps_approvals(hf: Holdfast, tmp_path: Path) -> None:
    """Also where nobody looked at the pipeline before: its graph is stored, and a worker runs it."""
    calls: list[str] = []

    class Ranks:
        keeps_approvals = True

        def run(self, node: Any, prompt: str, context: Any) -> str:
            calls.append(node.id)
            self.keeps_approvals = False
            return "ok"

    text = RANKED.replace('prompt="Which?"', 'prompt="Which?", tool_approval=all')
    result = await run(hf, text, tmp_path, backend=Ranks())
    assert "best" not in calls
    assert result.node_outcomes["best"] == "fail"
