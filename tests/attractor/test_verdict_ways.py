"""Outcomes that no edge knows, and verdicts that the stages behind a stage ask for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.attractor.runner import Runner
from tests.attractor.run import dot, run

pytestmark = pytest.mark.anyio

ROUTES = 'check -> done [condition="outcome=success"]; check -> fix [condition="outcome=fail"]; fix -> done'
FORMS = {
    "conditions": dot("a; fix;", ROUTES.replace("check", "a") + "; start -> a"),
    "diamond": dot("a; check [shape=diamond]; fix;", ROUTES + "; start -> a -> check"),
    "gate": dot("a [goal_gate=true]; fix;", "start -> a -> done; start -> fix -> done [weight=-1]"),
}


class Says:
    """A backend that gives one answer to each prompt, and keeps how it was asked."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: dict[str, str] = {}

    def run(self, node: object, _prompt: str, _context: object, *, verdict: str) -> str:
        name = str(getattr(node, "id", ""))
        self.asked[name] = verdict
        return self.text if name != "fix" else "fixed"


def verdict(outcome: str) -> str:
    return f"I looked.\n```json\n{json.dumps({'outcome': outcome})}\n```\n"


@pytest.mark.covers("CP2-V4")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("word", ["blocked", "rejected", "not done", "Failed."])
async def test_an_outcome_that_no_condition_compares_is_a_failure(
    hf: Holdfast, tmp_path: Path, form: str, word: str
) -> None:
    found = await run(hf, FORMS[form], tmp_path / "logs", backend=Says(verdict(word)))
    status = json.loads((tmp_path / "logs/a/status.json").read_text())
    assert status["outcome"] == "fail"
    assert f"the outcome {word!r} is none of success" in status["failure_reason"]
    if form == "gate":
        assert found.context["failure_class"] == "verdict"
    assert found.succeeded == (form != "gate")
    assert ("fix" in found.completed_nodes) == (form != "gate")


@pytest.mark.covers("AT-A16")
@pytest.mark.parametrize("compares", ["outcome=blocked", "outcome!=blocked"])
async def test_an_outcome_that_a_condition_compares_counts(
    hf: Holdfast, tmp_path: Path, compares: str
) -> None:
    text = dot("a; fix; b;", f'start -> a -> b; a -> fix [condition="{compares}"]; b -> done; fix -> done')
    found = await run(hf, text, tmp_path / "logs", backend=Says(verdict("blocked")))
    assert found.succeeded
    assert found.completed_nodes[1:3] == ("a", "fix" if compares == "outcome=blocked" else "b")


@pytest.mark.covers("AT-A31")
@pytest.mark.parametrize("gate", ["a [goal_gate=true];", "a; check [shape=diamond, goal_gate=true];"])
async def test_a_goal_gate_cannot_be_skipped(hf: Holdfast, tmp_path: Path, gate: str) -> None:
    text = dot(gate, f"start -> b -> a {'-> check' if 'check' in gate else ''} -> done")
    backend = Says(verdict("skipped"))
    found = await run(hf, text, tmp_path / "logs", backend=backend)
    assert not found.succeeded
    assert json.loads((tmp_path / "logs/a/status.json").read_text())["failure_reason"] == (
        "a goal gate cannot be skipped"
    )


async def test_a_command_that_made_up_an_outcome_has_failed(hf: Holdfast, tmp_path: Path) -> None:
    writes = """echo '{\\"outcome\\": \\"blocked\\"}' > $ATTRACTOR_STAGE_DIR/status.json"""
    text = FORMS["diamond"].replace("a;", f'a [shape=parallelogram, tool_command="{writes}"];', 1)
    found = await run(hf, text, tmp_path / "logs", backend=Says("fixed"))
    assert found.completed_nodes[1:4] == ("a", "check", "fix")


@pytest.mark.covers("CP2-V2")
async def test_a_stage_before_a_diamond_is_asked_for_its_verdict(hf: Holdfast, tmp_path: Path) -> None:
    backend = Says("I looked.")
    assert (await run(hf, FORMS["diamond"], tmp_path / "logs", backend=backend)).succeeded
    assert "outcome: success, retry, fail. Say success only if" in backend.asked["a"]
    assert backend.asked.get("fix", "") == ""


async def test_a_partial_success_is_offered_where_an_edge_takes_it(hf: Holdfast, tmp_path: Path) -> None:
    backend = Says("I looked.")
    text = FORMS["conditions"].replace("outcome=fail", "outcome!=success")
    await run(hf, text, tmp_path / "logs", backend=backend)
    assert "outcome: success, partial_success, retry, fail." in backend.asked["a"]


@pytest.mark.covers("CP2-V5")
@pytest.mark.parametrize("how", ["include", "include by auto_status", "graph", "diamond"])
@pytest.mark.parametrize("says", ["prose", "success"])
async def test_prose_before_a_fail_closed_gate_that_only_chooses_is_no_proof(
    hf: Holdfast, tmp_path: Path, how: str, says: str
) -> None:
    (tmp_path / "part.dot").write_text("digraph p { start; exit; look; start -> look -> exit }")
    gate = {
        "include": 'subgraph_file="part.dot", goal_gate=true, fail_closed=true',
        "include by auto_status": 'subgraph_file="part.dot", goal_gate=true, auto_status=false',
        "graph": 'subgraph_file="part.dot", goal_gate=true',
        "diamond": "shape=diamond, goal_gate=true, fail_closed=true",
    }[how]
    graph = "fail_closed=true" if how == "graph" else ""
    path = tmp_path / "whole.dot"
    path.write_text(dot(f"write; review [{gate}];", "start -> write -> review -> done", graph))
    backend = Says("It is fine." if says == "prose" else verdict("success"))
    found = await Runner(hf, logs_root=tmp_path / "logs", backend=backend).run(path)
    assert found.succeeded == (says == "success")
