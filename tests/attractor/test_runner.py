"""The runner: results, transforms, events, bounds, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast import Holdfast
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.program import program_of
from holdfast.attractor.registry import HandlerRegistry
from holdfast.attractor.runner import Runner, run_pipeline
from holdfast.errors import PipelineInvalidError, PipelineSyntaxError, VersionMismatchError
from holdfast.frontends.dot.document import Pipeline, Stage
from holdfast.model.fingerprint import decode_graph
from tests.attractor.run import dot, line, listed, run

pytestmark = pytest.mark.anyio

SMOKE = """
digraph test_pipeline {
    graph [goal="Create a hello world Python script"]
    start       [shape=Mdiamond]
    plan        [shape=box, prompt="Plan how to create a hello world script for: $goal"]
    implement   [shape=box, prompt="Write the code based on the plan", goal_gate=true]
    review      [shape=box, prompt="Review the code for correctness"]
    done        [shape=Msquare]
    start -> plan
    plan -> implement
    implement -> review [condition="outcome=success"]
    implement -> plan   [condition="outcome=fail", label="Retry"]
    review -> done      [condition="outcome=success"]
    review -> implement [condition="outcome=fail", label="Fix"]
}
"""


@pytest.mark.covers("AT-250", "AT-251", "AT-253")
async def test_the_smoke_pipeline_runs_and_leaves_its_directory(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, SMOKE, tmp_path, backend=lambda prompt: f"done: {prompt}")
    assert found.succeeded
    assert found.outcome.notes == "Pipeline completed"
    assert "implement" in found.completed_nodes
    for stage in ("plan", "implement", "review"):
        for name in ("prompt.md", "response.md", "status.json"):
            assert (tmp_path / stage / name).is_file()
    checkpoint = json.loads((tmp_path / "checkpoint.json").read_text())
    assert checkpoint["current_node"] == "done"
    assert checkpoint["completed_nodes"] == ["start", "plan", "implement", "review", "done"]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["name"], manifest["goal"]) == ("test_pipeline", "Create a hello world Python script")


@pytest.mark.covers("AT-55")
async def test_a_pipeline_with_an_error_is_never_run(hf: Holdfast, tmp_path: Path) -> None:
    ran: list[str] = []
    with pytest.raises(PipelineInvalidError, match="start"):
        await run(hf, "digraph g { a; done [shape=Msquare]; a -> done }", tmp_path, backend=ran.append)
    with pytest.raises(PipelineSyntaxError):
        await run(hf, "digraph g { a -> }", tmp_path)
    assert ran == []
    assert listed(tmp_path) == []


@pytest.mark.covers("AT-215", "AT-218")
async def test_transforms_that_are_registered_run_in_order(hf: Holdfast, tmp_path: Path) -> None:
    def saying(word: str) -> Callable[[Pipeline], Pipeline]:
        def apply(pipeline: Pipeline) -> Pipeline:
            stage = pipeline.stages["a"]
            attrs = {**stage.attrs, "prompt": stage.prompt + word}
            changed = msgspec.structs.replace(stage, attrs=attrs)
            return msgspec.structs.replace(pipeline, stages={**pipeline.stages, "a": changed})

        return apply

    runner = Runner(hf, logs_root=tmp_path)
    runner.register_transform(saying(" one"))
    runner.register_transform(saying(" two"))
    await runner.run(line('a [prompt="$goal:"];', "a"))
    assert (tmp_path / "a" / "prompt.md").read_text() == "ship it: one two"


async def test_a_pipeline_is_read_from_its_file_with_what_is_beside_it(hf: Holdfast, tmp_path: Path) -> None:
    (tmp_path / "p.md").write_text("From a file: $goal")
    file = tmp_path / "x.dot"
    file.write_text(line('a [prompt="@p.md"];', "a"))
    await run_pipeline(file, hf=hf, logs_root=tmp_path / "logs")
    assert (tmp_path / "logs" / "a" / "prompt.md").read_text() == "From a file: ship it"


async def test_without_a_directory_each_run_has_one_of_its_own(
    hf: Holdfast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_LOGS", str(tmp_path))
    found = await run_pipeline(line("a;", "a"), hf=hf)
    assert found.logs_root == tmp_path / found.run_id
    assert (tmp_path / found.run_id / "a" / "status.json").is_file()


@pytest.mark.covers("AT-156")
async def test_a_run_that_has_ended_is_only_informed_of(hf: Holdfast, tmp_path: Path) -> None:
    asked: list[str] = []
    runner = Runner(hf, backend=lambda prompt: asked.append(prompt) or "ok", logs_root=tmp_path)
    first = await runner.run(line("a;", "a"))
    again = await runner.resume(first.run_id)
    assert (again.status, again.completed_nodes) == ("success", first.completed_nodes)
    assert len(asked) == 1


async def test_a_stored_graph_is_enough_to_make_the_program(hf: Holdfast, tmp_path: Path) -> None:
    runner = Runner(hf, logs_root=tmp_path)
    program = runner.prepare(SMOKE).program
    await runner.run(SMOKE)
    service = await hf.service()
    stored = await service.store.flow("test_pipeline", program.version)
    assert stored is not None
    made = program_of(decode_graph(stored.graph))
    assert (made.version, made.code_digest) == (program.version, program.code_digest)
    with pytest.raises(VersionMismatchError, match="not made from a pipeline"):
        program_of(msgspec.structs.replace(made.graph.spec, document=msgspec.UNSET))


async def test_a_gate_waits_for_a_person_and_the_answer_routes(hf: Holdfast, tmp_path: Path) -> None:
    text = dot(
        'gate [shape=hexagon, label="Ship?"]; fix;',
        'start -> gate; gate -> done [label="[A] Approve"]; gate -> fix [label="[F] Fix"]; fix -> done',
    )
    runner = Runner(hf, logs_root=tmp_path)
    found = await runner.run(text)
    assert found.status == "waiting"
    assert found.holds[0].prompt == "Ship?"
    await (await hf.service()).answer(found.holds[0].id, "F", by="user:dana")
    again = await runner.resume(found.run_id)
    assert again.completed_nodes == ("start", "gate", "fix", "done")
    assert again.context["human.gate.selected"] == "F"
    alone = await Runner(hf, logs_root=tmp_path / "auto", auto_approve=True).run(text)
    assert alone.completed_nodes == ("start", "gate", "done")


LOOP = "a [type=bad, max_visits=50]; fix;"
BACK = 'start -> a; a -> done [condition="outcome=success"]; a -> fix [condition="outcome=fail"]; fix -> a'


class Failing:
    def __init__(self, reason: Callable[[int], str]) -> None:
        self.calls = 0
        self._reason = reason

    def execute(self, node: Stage, context: Any, graph: Any, logs_root: Any) -> StageOutcome:
        self.calls += 1
        return StageOutcome(status="fail", failure_reason=self._reason(self.calls))


@pytest.mark.covers("ATTRACTOR-BOUND-04")
async def test_the_same_failure_again_and_again_stops_the_run(hf: Holdfast, tmp_path: Path) -> None:
    bad = Failing(lambda n: f"line {n}: no such name at 0x{n:x}ff")
    found = await run(hf, dot(LOOP, BACK), tmp_path, registry=HandlerRegistry({"bad": bad}))
    assert (found.status, bad.calls) == ("fail", 3)
    assert "failed 3 times in the same way" in found.outcome.failure_reason
    more = Failing(lambda n: "the same")
    text = dot(LOOP, BACK, "max_same_failures=5")
    await run(hf, text, tmp_path / "5", registry=HandlerRegistry({"bad": more}))
    assert more.calls == 5


@pytest.mark.covers("ATTRACTOR-BOUND-04")
async def test_failures_that_differ_are_bounded_by_visits_only(hf: Holdfast, tmp_path: Path) -> None:
    words = ["red", "green", "blue", "black"]
    bad = Failing(lambda n: words[n % 4])
    text = dot(LOOP.replace("50", "9"), BACK)
    found = await run(hf, text, tmp_path, registry=HandlerRegistry({"bad": bad}))
    assert (found.status, bad.calls) == ("fail", 9)


@pytest.mark.covers("ATTRACTOR-BOUND-04")
@pytest.mark.parametrize(
    "says",
    [
        pytest.param("for i in $(seq $n); do echo FAILED test_$i; done; echo see above", id="names"),
        pytest.param("echo ==== $n failed, $((9 - n)) passed in 0.0${n}s ====", id="number"),
    ],
)
async def test_loop_that_makes_progress_is_not_stopped(hf: Holdfast, tmp_path: Path, says: str) -> None:
    """The last line of each failure is the same, or differs in a number of tests: each round repairs one."""
    left = tmp_path / "left"
    left.write_text("6")
    script = f"n=$(($(cat {left}) - 1)); echo $n >{left}; [ $n = 0 ] && exit 0; {says}; exit 1"
    stages = f'a [shape=parallelogram, tool_command="{script}"]; fix;'
    found = await run(hf, dot(stages, BACK), tmp_path / "logs")
    assert found.succeeded, found.outcome
    assert found.completed_nodes.count("a") == 6


@pytest.mark.covers("ATTRACTOR-BOUND-04")
async def test_reviewer_who_finds_something_else_each_time_goes_on(hf: Holdfast, tmp_path: Path) -> None:
    """With the reason in its notes, or nowhere but in its prose."""
    words = iter(["the name", "the docs", "a test", "the style"])

    def review(node: Stage, prompt: str, context: Any) -> Any:
        word = next(words, "") if node.id == "a" else ""
        if node.id == "a" and word and word != "the style":
            return {"outcome": "fail", "notes": f"{word} is wrong"}
        if word:
            return f'I dislike {word}.\n```json\n{{"outcome": "fail"}}\n```'
        return "fine"

    text = dot("a [prompt=review]; fix;", BACK)
    found = await run(hf, text, tmp_path, backend=review)
    assert found.succeeded, found.outcome
    history = json.loads((tmp_path / "checkpoint.json").read_text())["node_history"]
    assert [outcome for name, outcome in history if name == "a"] == ["fail"] * 4 + ["success"]


async def test_notes_of_a_failure_are_its_reason_where_it_gives_none(hf: Holdfast, tmp_path: Path) -> None:
    def bad(node: Stage, prompt: str, context: Any) -> Any:
        return {"outcome": "fail", "notes": "the name is wrong"} if node.id == "a" else "fixed"

    found = await run(hf, dot("a [prompt=review]; fix;", BACK), tmp_path, backend=bad)
    assert found.outcome.failure_reason.endswith("3 times in the same way: the name is wrong")
    assert found.context["failure_reason"].endswith("the name is wrong")


@pytest.mark.covers("ATTRACTOR-BOUND-04", "ATTRACTOR-BOUND-06")
async def test_failures_are_counted_over_a_resume(tmp_path: Path) -> None:
    """Each time by a house of its own, as after a crash."""
    bad = Failing(lambda n: "the same")
    gated = 'start -> a; a -> done [condition="outcome=success"]; a -> ask [condition="outcome=fail"]; '
    text = dot("a [type=bad]; ask [shape=hexagon, label=Again];", gated + "ask -> a [label=Yes]")
    run_id = ""
    for turn in range(3):
        async with Holdfast(f"sqlite:{tmp_path}/runs.db") as hf:
            runner = Runner(hf, logs_root=tmp_path, registry=HandlerRegistry({"bad": bad}))
            found = await (runner.resume(run_id) if run_id else runner.run(text))
            run_id = found.run_id
            if turn < 2:
                assert found.status == "waiting"
                await (await hf.service()).answer(found.holds[0].id, "Yes", by="user:dana")
    assert (found.status, bad.calls) == ("fail", 3)
    assert "failed 3 times in the same way" in found.outcome.failure_reason


class Spending:
    def __init__(self) -> None:
        self.calls = 0

    async def execute(
        self, node: Any, context: Any, graph: Any, logs_root: Any, visit: StageVisit
    ) -> StageOutcome:
        self.calls += 1
        visit.ctx.spent(tokens=60, cost=0.5)
        return StageOutcome()


STAGES = "".join(f"s{i} [type=spend, effect=read];" for i in range(5))
NAMES = [f"s{i}" for i in range(5)]


@pytest.mark.covers("ATTRACTOR-BOUND-05")
@pytest.mark.parametrize("graph", ["budget_tokens=100", 'budget_usd="0.9"', "budget_usd=0.9"])
async def test_a_budget_that_is_used_up_stops_the_run(hf: Holdfast, tmp_path: Path, graph: str) -> None:
    spend = Spending()
    text = line(STAGES, *NAMES, graph=graph)
    found = await run(hf, text, tmp_path, registry=HandlerRegistry({"spend": spend}))
    assert (found.status, spend.calls) == ("fail", 2)
    assert "budget" in found.outcome.failure_reason


@pytest.mark.covers("ATTRACTOR-BOUND-05")
async def test_a_budget_of_time_counts_the_work_of_stages(hf: Holdfast, tmp_path: Path) -> None:
    text = line('a [shape=parallelogram, tool_command="sleep 0.1"]; b;', "a", "b", graph="budget_time=50ms")
    found = await run(hf, text, tmp_path)
    assert (found.status, found.completed_nodes[:2]) == ("fail", ("start", "a"))


@pytest.mark.covers("ATTRACTOR-BOUND-05")
async def test_at_a_threshold_somebody_is_asked_to_go_on(hf: Holdfast, tmp_path: Path) -> None:
    spend = Spending()
    text = line(STAGES, *NAMES, graph="budget_tokens=120, budget_ask_at=0.5")
    runner = Runner(hf, logs_root=tmp_path, registry=HandlerRegistry({"spend": spend}))
    found = await runner.run(text)
    service = await hf.service()
    prompts: list[str] = []
    while found.status == "waiting":
        prompts.append(found.holds[0].prompt)
        await service.answer(found.holds[0].id, "go on" if len(prompts) < 3 else "stop", by="user:dana")
        found = await runner.resume(found.run_id)
    assert prompts[0].startswith("60 tokens of 120 tokens are used up before stage 's1'")
    assert prompts[1].startswith("180 tokens of 240 tokens are used up before stage 's3'")
    assert len(prompts) == 2
    assert (found.status, spend.calls) == ("success", 5)


@pytest.mark.covers("ATTRACTOR-BOUND-05")
async def test_somebody_who_says_stop_stops_the_run(hf: Holdfast, tmp_path: Path) -> None:
    spend = Spending()
    text = line(STAGES, *NAMES, graph="budget_tokens=100, budget_ask_at=0.5")
    runner = Runner(hf, logs_root=tmp_path, registry=HandlerRegistry({"spend": spend}))
    found = await runner.run(text)
    await (await hf.service()).answer(found.holds[0].id, "stop", by="user:dana")
    found = await runner.resume(found.run_id)
    assert (found.status, spend.calls) == ("fail", 1)
    assert "the budget was not raised at 60 tokens" in found.outcome.failure_reason
