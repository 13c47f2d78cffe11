"""How much of a run a stage's model is told: which mode counts, what each tells, and how much at most."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast, tool
from holdfast.attractor import StageOutcome
from holdfast.attractor.fidelity import RESUMED, resume_mode
from holdfast.attractor.preamble import BUDGETS, tokens
from holdfast.frontends.dot.rules import FIDELITIES
from tests.agents.conftest import provider
from tests.agents.provider import Answer, Provider
from tests.attractor.models import backend
from tests.attractor.run import dot, line, run, written

__all__ = ["provider"]
pytestmark = pytest.mark.anyio

TOLD = ("truncate", "compact", "summary:low", "summary:medium", "summary:high")
Heard = dict[str, Any]


def listener(heard: Heard, outcomes: dict[str, StageOutcome] | None = None) -> Any:
    def answer(node: Any, prompt: str, context: Any, preamble: str, session: Any) -> Any:
        heard[node.id] = (preamble, session)
        return (outcomes or {}).get(node.id) or f"answer of {node.id}"

    return answer


def is_full(heard: Heard, stage: str) -> bool:
    return not heard[stage][0]


@pytest.mark.covers("AT-130")
@pytest.mark.parametrize(
    ("edge", "stage", "graph", "mode"),
    [
        ("full", "truncate", "truncate", "full"),
        ("", "full", "truncate", "full"),
        ("", "", "full", "full"),
        ("", "", "", "compact"),
        ("truncate", "full", "full", "truncate"),
        ("nonsense", "", "full", "full"),
    ],
)
async def test_the_edge_beats_the_stage_and_the_stage_the_graph(
    hf: Holdfast, tmp_path: Path, edge: str, stage: str, graph: str, mode: str
) -> None:
    heard: Heard = {}
    text = dot(
        f"a; b{f' [fidelity={stage}]' if stage else ''};",
        f"start -> a; a -> b{f' [fidelity={edge}]' if edge else ''}; b -> done",
        f"goal=g{f', default_fidelity={graph}' if graph else ''}",
    )
    result = await run(hf, text, tmp_path, backend=listener(heard))
    assert result.context["internal.fidelity"]["mode"] == mode
    assert is_full(heard, "b") == (mode == "full")
    assert ("Completed stages:" in heard["b"][0]) == (mode == "compact")


@pytest.mark.covers("AT-131")
@pytest.mark.parametrize("mode", FIDELITIES)
async def test_all_six_modes_are_taken(hf: Holdfast, tmp_path: Path, mode: str) -> None:
    heard: Heard = {}
    text = line(f'a; b [fidelity="{mode}"];', "a", "b")
    result = await run(hf, text, tmp_path, backend=listener(heard))
    assert result.succeeded
    assert not [each for each in result.diagnostics if each.rule == "fidelity_valid"]
    assert result.context["internal.fidelity"]["mode"] == mode
    assert is_full(heard, "b") == (mode == "full")


@pytest.mark.covers("AT-134")
async def test_truncate_serves_the_goal_and_the_run_and_nothing_else(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    text = line("a; b [fidelity=truncate];", "a", "b")
    result = await run(hf, text, tmp_path, backend=listener(heard), context={"secret": "x"})
    assert heard["b"][0] == f"Goal: ship it\nRun: {result.run_id}"


@pytest.mark.covers("AT-135", "AT-137")
async def test_compact_lists_stages_outcomes_and_values(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    outcomes = {
        "a": StageOutcome(notes="planned it", context_updates={"files": ["x.py", "y.py"], "count": 3}),
        "b": StageOutcome(status="partial_success", notes="half of it"),
    }
    text = line('a; b; c [prompt="Now $goal"];', "a", "b", "c")
    result = await run(hf, text, tmp_path, backend=listener(heard, outcomes), context={"ticket": "T-1"})
    assert heard["c"][0].splitlines() == [
        "Goal: ship it",
        f"Run: {result.run_id}",
        "Completed stages:",
        "- a: success: planned it",
        "- b: partial_success: half of it",
        "Context:",
        "- count: 3",
        '- files: ["x.py","y.py"]',
        "- ticket: T-1",
    ]
    # Built when the stage runs, of what is known then; the prompt itself stays what it is.
    assert "Completed stages:" not in heard["a"][0]
    assert written(tmp_path / "c" / "prompt.md") == "Now ship it"
    assert written(tmp_path / "c" / "preamble.md") == heard["c"][0]


@pytest.mark.covers("AT-137")
async def test_full_has_no_preamble(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    await run(hf, line("a; b [fidelity=full];", "a", "b"), tmp_path, backend=listener(heard))
    assert heard["b"][0] == ""
    assert written(tmp_path / "b" / "preamble.md") == ""


async def test_summaries_tell_what_failed_on_the_way(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    fails = StageOutcome(status="fail", failure_reason="no such file")
    text = dot(
        't [shape=parallelogram, tool_command="echo 12 passed"]; a; b [fidelity="summary:high"]; '
        'c [fidelity="summary:low"];',
        'start -> t -> a; a -> b [condition="outcome=fail"]; b -> c -> done',
    )
    await run(hf, text, tmp_path, backend=listener(heard, {"a": fails}))
    result = heard["b"][0]
    assert "Stages that have ended: 2 (1 success, 1 fail)." in result
    assert "- a: fail: no such file" in result
    assert "- a failed 1 of 1 times" in result
    assert "- tool.output: 12 passed" in result
    assert "- failure_reason: no such file" in result
    low = heard["c"][0]
    assert "Stages that have ended: 3 (2 success, 1 fail)." in low
    assert "Last stage:\n- b: success: answer of b" in low
    assert "tool.output" not in low


async def test_branches_and_tool_calls_are_informed_of(
    hf: Holdfast, tmp_path: Path, provider: Provider
) -> None:
    looks = Answer(calls=[("c", "look", {})])
    said = ("looked twice", "seen: x", "seen: y", "all", "short")
    provider.says(looks, looks, *(Answer(each) for each in said))
    text = dot(
        "a; fan [shape=component, max_parallel=1]; x; y; join [shape=tripleoctagon]; "
        'z [fidelity="summary:high"]; last [fidelity=compact];',
        "start -> a -> fan; fan -> x -> join; fan -> y -> join; join -> z -> last -> done",
    )

    @tool(effect="read")
    async def look() -> str:
        """Looks."""
        return "nothing"

    result = await run(hf, text, tmp_path, backend=backend(provider, tools=[look]))
    assert result.succeeded
    reply = written(tmp_path / "z" / "preamble.md")
    assert "- a: success [look x2]: looked twice" in reply
    assert "Branches:\n- x: success: seen: x\n- y: success: seen: y\n" in reply
    assert "- a: success: looked twice" in written(tmp_path / "last" / "preamble.md")


@pytest.mark.covers("AT-136", "ATTRACTOR-HANDLER-11")
@pytest.mark.parametrize("mode", TOLD)
async def test_budgets_hold_whatever_the_context_is(hf: Holdfast, tmp_path: Path, mode: str) -> None:
    heard: Heard = {}
    huge = {f"key{n}": "é" * 3000 for n in range(60)} | {"k" * 3000: "v", "one": {"deep": "z" * 400_000}}
    many = [f"s{n}" for n in range(45)]
    notes = {name: StageOutcome(notes="ü" * 3000) for name in many}
    text = line(
        "; ".join(many) + f'; last [fidelity="{mode}"];', *many, "last", graph=f'goal="{"g" * 20000}"'
    )
    await run(hf, text, tmp_path, backend=listener(heard, notes), context=huge)
    result = heard["last"][0]
    assert tokens(result) <= BUDGETS[mode]
    assert result.startswith("Goal: ggg")
    assert "Run: " in result
    if mode in ("compact", "summary:medium", "summary:high"):
        assert "- s44: success: üü" in result
        assert "more left out" in result
        assert tokens(result) > BUDGETS[mode] * 0.8


@pytest.mark.covers("CP2-I4")
async def test_value_of_an_output_keeps_its_end(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    stages = 't [shape=parallelogram, tool_command="yes banner | head -n 5000; echo 3 passed"]; a;'
    await run(hf, line(stages, "t", "a"), tmp_path, backend=listener(heard))
    (value,) = [each for each in heard["a"][0].splitlines() if each.startswith("- tool.output: ")]
    assert value.startswith("- tool.output: …")
    assert value.endswith("banner 3 passed")


@pytest.mark.covers("AT-136")
def test_the_specifications_budgets() -> None:
    assert [BUDGETS[f"summary:{size}"] for size in ("low", "medium", "high")] == [600, 1500, 3000]


@pytest.mark.covers("ATTRACTOR-RUN-05")
@pytest.mark.parametrize("instead", ["summary:high", "compact"])
async def test_a_lost_conversation_is_reported_in_short_for_one_hop(
    hf: Holdfast, tmp_path: Path, instead: str
) -> None:
    heard: Heard = {}
    text = line("a; b;", "a", "b", graph="goal=g, default_fidelity=full, thread_id=t")
    result = await run(hf, text, tmp_path, backend=listener(heard), context={RESUMED: instead})
    assert heard["a"][0].startswith("Goal: g")
    assert is_full(heard, "b")
    assert result.context[RESUMED] == ""


@pytest.mark.covers("ATTRACTOR-RUN-05")
@pytest.mark.parametrize(
    ("asked", "graph", "mode"),
    [
        ("", "", "summary:high"),
        ("compact", "keep", "compact"),
        ("", "keep", ""),
        ("", "compact", "compact"),
        ("full", "", ""),
    ],
)
def test_what_stands_for_a_lost_conversation_can_be_chosen(asked: str, graph: str, mode: str) -> None:
    assert resume_mode(asked, graph) == mode


FAILS = "shape=parallelogram, tool_command"


@pytest.mark.parametrize("mode", ["compact", "summary:low", "summary:medium", "summary:high"])
async def test_a_preamble_begins_with_why_and_the_end_of_the_last_failure(
    hf: Holdfast, tmp_path: Path, mode: str
) -> None:
    heard: Heard = {}
    end = "assert 1 == 2, " + "y" * 970 + " THE END"
    (tmp_path / "out").write_text("THE BEGIN\n" + "x" * 60_000 + "\n" + end)
    text = dot(
        f't [{FAILS}="cat {tmp_path}/out; exit 1"]; b [fidelity="{mode}"]; o [{FAILS}="echo later"]; '
        f'c [fidelity="{mode}"];',
        'start -> t; t -> b [label="Fix it", condition="outcome=fail"]; t -> done; b -> o -> c -> done',
    )
    await run(hf, text, tmp_path / "logs", backend=listener(heard))
    for stage in "bc":
        told = heard[stage][0]
        assert end[-1000:] in told
        assert "Last failure, of t: exit code 1" in told
        assert "THE BEGIN" in told
        assert "bytes left out; the whole is in t/visits/1.stdout ...]" in told
        assert "bytes left out" in told.split("THE BEGIN", 1)[1]
        assert tokens(told) <= BUDGETS[mode]
        assert told.index("Last failure") < told.index(
            "Stages that" if mode != "compact" else "Completed stages:"
        )
    assert 'b follows t, by the edge "Fix it" because outcome=fail.' in heard["b"][0]


async def test_a_failure_that_was_repaired_is_not_reported_as_the_last(hf: Holdfast, tmp_path: Path) -> None:
    heard: Heard = {}
    flag = tmp_path / "flag"
    text = dot(
        f't [{FAILS}="test -e {flag} || {{ touch {flag}; echo red; exit 1; }}"]; b; c;',
        'start -> t; t -> b [condition="outcome=fail"]; b -> t; t -> c [condition="outcome=success"]; '
        "c -> done",
    )
    await run(hf, text, tmp_path / "logs", backend=listener(heard))
    assert "Its output:\nred" in heard["b"][0]
    assert "Last failure" not in heard["c"][0]


async def test_a_jump_says_what_failed(hf: Holdfast, tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(node: Any, prompt: str, preamble: str) -> Any:
        seen.append(preamble)
        failed = StageOutcome(status="fail", failure_reason="two are red")
        return failed if node.id == "gate" and len(seen) < 3 else "ok"

    text = line("a; gate [goal_gate=true, retry_target=a];", "a", "gate")
    assert (await run(hf, text, tmp_path, backend=answer)).succeeded
    said = "a runs again because the goal gate gate is not satisfied.\ngate: fail: two are red\n"
    assert f"{said}Last failure, of gate: two are red" in seen[2]
