"""Prompts refer to what earlier stages and branches left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.outcome import StageOutcome
from holdfast.frontends.dot.references import Reference, expanded, references_in
from holdfast.frontends.dot.transforms import prepare
from tests.attractor.run import dot, line, run, written

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("{{stages.a.response}}", "<stages a response>"),
        ("x {{ stages.a.stdout | tail(5) }} y", "x dout> y"),
        ("{{stages.a.stdout|head( 3 )}}", "<st"),
        ("{{context.tool.output}}", "<context tool.output >"),
        ("{{branches.b.notes}}{{branches.b.verdict}}", "<branches b notes><branches b verdict>"),
        ("{{ other }} {{stages}} {{x | tail(3)}} {{{{", "{{ other }} {{stages}} {{x | tail(3)}} {{{{"),
        ("{{stages.a.stdout | middle(3)}}", "{{stages.a.stdout | middle(3)}}"),
        ("{{stages.a.stdout | tail(0)}}.", "."),
        ("no reference", "no reference"),
    ],
)
def test_references_are_replaced_once_and_all_else_stays(text: str, whole: str) -> None:
    def value(found: Reference) -> str:
        return f"<{found.kind} {found.name} {found.field}>"

    assert expanded(text, value) == whole


@pytest.mark.covers("CP2-I2")
def test_what_is_inserted_is_not_read_again() -> None:
    assert expanded("{{context.a}}", lambda found: "{{context.b}} $goal") == "{{context.b}} $goal"
    assert [found.name for found in references_in("{{context.a}} {{ stages.b.notes }}")] == ["a", "b"]


async def prompts(hf: Holdfast, text: str, logs: Path, **says: Any) -> dict[str, str]:
    """What each stage was asked."""
    asked: dict[str, str] = {}

    def answer(node: Any, prompt: str) -> Any:
        asked[node.id] = prompt
        return says.get(node.id, "ok")

    assert (await run(hf, text, logs, backend=answer)).succeeded
    return asked


@pytest.mark.covers("CP2-I2")
async def test_a_prompt_gets_what_earlier_stages_left(hf: Holdfast, tmp_path: Path) -> None:
    long = "begin " + "x" * 5000 + " end $goal {{context.n}}"
    text = dot(
        'a [prompt="A"]; t [shape=parallelogram, tool_command="echo out; echo err >&2; exit 3"]; '
        'b [prompt="{{stages.a.response}}|{{stages.t.stdout}}|{{stages.t.stderr}}|'
        "{{stages.t.failure_reason}}|{{stages.t.outcome}}|{{stages.a.notes}}|{{context.n}}|"
        '{{stages.c.response}}|{{other}}|$goal"]; '
        'c [prompt="{{stages.a.response | tail(9)}} {{stages.a.verdict}}"];',
        'start -> a -> t; t -> b [condition="outcome=fail"]; t -> done; b -> c -> done; '
        'c -> b [condition="context.n=1"]',
    )
    verdict = (
        f'{long}\n```json\n{{"outcome": "success", "notes": "well", "context_updates": {{"n": 7}}}}\n```'
    )
    asked = await prompts(hf, text, tmp_path, a=verdict)
    parts = asked["b"].split("|")
    assert parts[0] == verdict
    assert parts[1:6] == ["out\n", "err\n", "exit code 3: err", "fail", "well"]
    assert parts[6:] == ["7", "", "{{other}}", "ship it"]
    assert asked["c"].startswith(verdict[-9:] + " {")
    assert '"notes":"well"' in asked["c"]
    assert written(tmp_path / "b" / "prompt.md") == asked["b"]


async def test_the_last_visit_of_a_stage_counts(hf: Holdfast, tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(node: Any, prompt: str) -> Any:
        seen.append(prompt)
        again = node.id == "check" and len(seen) < 4
        return StageOutcome(preferred_label="again") if again else f"visit {len(seen)}"

    text = dot(
        'a [prompt="{{stages.a.response}}."]; check [prompt="{{stages.a.response}}"];',
        "start -> a -> check; check -> done [label=ok, weight=1]; check -> a [label=again]",
    )
    assert (await run(hf, text, tmp_path, backend=answer)).succeeded
    assert seen == [".", "visit 1", "visit 1.", "visit 3"]


@pytest.mark.covers("CP2-I2")
async def test_branches_and_their_stages_are_there_after_a_fan_in(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        'f [shape=component]; x [prompt="X"]; x2 [prompt="{{stages.x.response}}!"]; y [prompt="Y"]; '
        'j [shape=tripleoctagon, prompt="Which?"]; '
        'z [prompt="{{branches.x.response}}|{{branches.y.response | head(4)}}|{{branches.y.outcome}}|'
        '{{stages.x.response}}|{{branches.x.verdict}}"];',
        "start -> f; f -> x -> x2 -> j; f -> y -> j; j -> z -> done",
    )
    asked = await prompts(hf, text, tmp_path, x="of x", x2="of x2 " * 99, y="of y, long", j="y")
    assert asked["x2"] == "of x!"
    parts = asked["z"].split("|")
    assert parts[:4] == ["of x2 " * 99, "of y", "success", "of x"]
    assert '"outcome":"success"' in parts[4]
    assert "stage.output." not in asked["j"]


async def test_nothing_is_kept_of_stages_that_no_prompt_names(hf: Holdfast, tmp_path: Path) -> None:
    result = await run(hf, line('a [prompt="A"];', "a"), tmp_path, backend=lambda prompt: "secret text")
    assert not [key for key in result.context if key.startswith(("stage.output.", "internal.response"))]


@pytest.mark.covers("CP2-I2")
@pytest.mark.parametrize(
    ("prompt", "severity", "said"),
    [
        ("{{stages.nobody.response}}", "error", "names a stage that does not exist"),
        ("{{stages.a.colour}}", "error", "there is no colour"),
        ("{{branches.nobody.notes}}", "error", "names a stage that does not exist"),
        ("{{stages.c.response}}", "warning", "cannot run before b"),
        ("{{branches.a.notes}}", "warning", "a does not begin a branch"),
        ("{{stages.b.response}}", "warning", "cannot run before b"),
        ("{{stages.a.response}} {{context.x}} {{else}}", "", ""),
    ],
)
def test_references_are_checked_before_a_run(prompt: str, severity: str, said: str) -> None:
    stages = f'a [prompt="A"]; b [prompt="{prompt}"]; c [prompt="C"];'
    found = prepare(line(stages, "a", "b", "c"), path="x.dot").diagnostics
    mine = [each for each in found if each.rule == "prompt_references"]
    assert [str(each.severity) for each in mine] == ([severity] if severity else [])
    assert all(said in each.message for each in mine)


def test_a_stage_of_a_loop_can_run_before() -> None:
    text = dot(
        'a [prompt="{{stages.b.response}}"]; b [prompt="B"]; c [prompt="C {{stages.d.notes}}"]; '
        'd [prompt="D", goal_gate=true, retry_target=c];',
        "start -> a -> b; b -> a [label=again]; b -> c -> d -> done",
    )
    found = prepare(text, path="x.dot").diagnostics
    assert [each for each in found if each.rule == "prompt_references"] == []


def test_references_of_an_included_pipeline_name_its_own_stages(tmp_path: Path) -> None:
    (tmp_path / "inner.dot").write_text(
        line(
            'p [prompt="P"]; q [prompt="{{stages.p.response | tail(3)}} {{context.p}}"];',
            "p",
            "q",
            graph="goal=g, agent_permissions=plan",
        )
    )
    outer = tmp_path / "outer.dot"
    outer.write_text(line('sub [subgraph_file="inner.dot", agent_idle_timeout=5s];', "sub"))
    found = prepare(outer.read_bytes(), path=str(outer))
    assert [each.message for each in found.diagnostics if each.rule == "prompt_references"] == []
    stages = found.require_valid().stages
    assert stages["sub__q"].prompt == "{{stages.sub__p.response | tail(3)}} {{context.p}}"
    # What its graph allows its agents goes with its stages.
    assert stages["sub__p"].text("agent_permissions") == "plan"
    assert stages["sub__p"].text("agent_idle_timeout") == "5s"
