"""The parity matrix (section 11.12), a test a row, and the smoke test (section 11.13)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.runner import PipelineResult, Runner
from holdfast.frontends.dot.diagnostics import DiagnosticSeverity
from holdfast.frontends.dot.document import Stage
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.transforms import prepare
from holdfast.frontends.dot.validate import validate
from tests.attractor.run import dot, line
from tests.attractor.test_runner import SMOKE

pytestmark = [pytest.mark.anyio, pytest.mark.covers("ATTRACTOR-PROOF-01")]

Row = Callable[["Bench"], Awaitable[None]]
ROWS: dict[str, Row] = {}


def row(case: str) -> Callable[[Row], Row]:
    def keep(work: Row) -> Row:
        ROWS[case] = work
        return work

    return keep


class Bench:
    """Where a row is tried: stages say what `said` has for them, and who was asked is in `trace`."""

    def __init__(self, hf: Holdfast, logs: Path) -> None:
        self.hf, self.logs = hf, logs
        self.trace: list[str] = []
        self.prompts: dict[str, str] = {}
        self.seen: dict[str, dict[str, Any]] = {}

    def runner(self, **said: Any) -> Runner:
        def answer(node: Stage, prompt: str, context: PipelineContext) -> Any:
            self.trace.append(node.id)
            self.prompts[node.id] = prompt
            self.seen[node.id] = context.snapshot()
            found = said.get(node.id, f"{node.id} is done")
            return found.pop(0) if isinstance(found, list) else found

        return Runner(self.hf, backend=answer, logs_root=self.logs)

    async def run(self, text: str, **said: Any) -> PipelineResult:
        shutil.rmtree(self.logs)
        return await self.runner(**said).run(text)


def fail(reason: str = "no") -> StageOutcome:
    return StageOutcome(status="fail", failure_reason=reason)


def errors(text: str) -> list[str]:
    return [d.rule for d in validate(parse(text).pipeline) if d.severity is DiagnosticSeverity.error]


@row("Parse a simple linear pipeline (start -> A -> B -> done)")
async def _linear(bench: Bench) -> None:
    found = parse(line("A; B;", "A", "B")).pipeline
    assert list(found.stages) == ["start", "done", "A", "B"]
    assert [(link.source, link.target) for link in found.links] == [("start", "A"), ("A", "B"), ("B", "done")]


@row("Parse a pipeline with graph-level attributes (goal, label)")
async def _attributes(bench: Bench) -> None:
    found = parse('digraph g { graph [goal="Ship", label="The pipeline"]; a }').pipeline
    assert (found.goal, found.text("label")) == ("Ship", "The pipeline")


@row("Parse multi-line node attributes")
async def _multi_line(bench: Bench) -> None:
    found = parse('digraph g {\n a [\n  label="A",\n  prompt="two\\nlines",\n  max_retries=3\n ]\n}').pipeline
    stage = found.stages["a"]
    assert (stage.label, stage.prompt, stage.integer("max_retries", 0)) == ("A", "two\nlines", 3)


@row("Validate: missing start node -> error")
async def _no_start(bench: Bench) -> None:
    assert "start_node" in errors("digraph g { a; done [shape=Msquare]; a -> done }")


@row("Validate: missing exit node -> error")
async def _no_exit(bench: Bench) -> None:
    assert "terminal_node" in errors("digraph g { start [shape=Mdiamond]; a; start -> a }")


@row("Validate: orphan node -> warning")
async def _orphan(bench: Bench) -> None:
    """An error here, by the table of rules (AT-A5)."""
    found = [d for d in validate(parse(line("a; lone;", "a")).pipeline) if d.rule == "reachability"]
    assert [(d.node_id, d.severity) for d in found] == [("lone", DiagnosticSeverity.error)]


@row("Execute a linear 3-node pipeline end-to-end")
async def _three(bench: Bench) -> None:
    found = await bench.run(line("a;", "a"))
    assert found.succeeded
    assert found.completed_nodes == ("start", "a", "done")
    assert json.loads((bench.logs / "a" / "status.json").read_text())["outcome"] == "success"
    assert json.loads((bench.logs / "checkpoint.json").read_text())["current_node"] == "done"


BRANCHING = dot(
    "a; well; badly;",
    'start -> a; a -> well [condition="outcome=success"]; a -> badly [condition="outcome=fail"]; '
    "well -> done; badly -> done",
)


@row("Execute with conditional branching (success/fail paths)")
async def _branching(bench: Bench) -> None:
    assert (await bench.run(BRANCHING)).succeeded
    assert (await bench.run(BRANCHING, a=fail())).succeeded
    assert bench.trace == ["a", "well", "a", "badly"]


@row("Execute with retry on failure (max_retries=2)")
async def _retry(bench: Bench) -> None:
    found = await bench.run(line("a [max_retries=2];", "a"), a=[fail(), fail(), "well"])
    assert found.succeeded
    assert bench.trace == ["a"] * 3
    spent = await bench.run(line("a [max_retries=2];", "a"), a=[fail("once more")] * 9)
    assert (spent.status, len(bench.trace)) == ("fail", 6)
    assert "once more" in spent.outcome.failure_reason


GATED = dot("g [goal_gate=true];", 'start -> g; g -> done; g -> done [condition="outcome=fail"]')


@row("Goal gate blocks exit when unsatisfied")
async def _gate_blocks(bench: Bench) -> None:
    found = await bench.run(GATED, g=fail())
    assert (found.status, found.outcome.failure_reason) == (
        "fail", "Goal gate unsatisfied and no retry target",
    )  # fmt: skip


@row("Goal gate allows exit when all satisfied")
async def _gate_allows(bench: Bench) -> None:
    assert (await bench.run(GATED)).succeeded
    again = GATED.replace("goal_gate=true", "goal_gate=true, retry_target=g")
    assert (await bench.run(again, g=[fail(), "well"])).succeeded
    assert bench.trace == ["g", "g", "g"]


@row("Wait.human presents choices and routes on selection")
async def _human(bench: Bench) -> None:
    text = dot(
        'h [shape=hexagon, label="Ship?"]; ship; fix;',
        'start -> h; h -> ship [label="[A] Approve"]; h -> fix [label="[F] Fix"]; ship -> done; fix -> done',
    )
    runner = bench.runner()
    waiting = await runner.run(text)
    (hold,) = waiting.holds
    options = {option.label: option.id for option in hold.options or ()}
    assert list(options) == ["[A] Approve", "[F] Fix"]
    await (await bench.hf.service()).answer(hold.id, options["[F] Fix"])
    found = await runner.resume(waiting.run_id)
    assert found.succeeded
    assert bench.trace == ["fix"]
    assert found.context["human.gate.label"] == "[F] Fix"


@row("Edge selection: condition match wins over weight")
async def _condition(bench: Bench) -> None:
    text = dot(
        "a; b; c;",
        'start -> a; a -> b [weight=100]; a -> c [condition="outcome=success"]; b -> done; c -> done',
    )
    await bench.run(text)
    assert bench.trace == ["a", "c"]


@row("Edge selection: weight breaks ties for unconditional edges")
async def _weight(bench: Bench) -> None:
    await bench.run(dot("a; b; c;", "start -> a; a -> b; a -> c [weight=2]; b -> done; c -> done"))
    assert bench.trace == ["a", "c"]


@row("Edge selection: lexical tiebreak as final fallback")
async def _lexical(bench: Bench) -> None:
    await bench.run(dot("a; c; b;", "start -> a; a -> c; a -> b; b -> done; c -> done"))
    assert bench.trace == ["a", "b"]


@row("Context updates from one node are visible to the next")
async def _context(bench: Bench) -> None:
    await bench.run(line("a; b;", "a", "b"), a=StageOutcome(context_updates={"plan": ["x"]}))
    assert bench.seen["b"]["plan"] == ["x"]


@row("Checkpoint save and resume produces same result")
async def _resume(bench: Bench) -> None:
    text = line("a; b; c;", "a", "b", "c")
    whole = await bench.run(text)
    broken = fail("the machine is gone")
    runner = bench.runner(b=[broken, "well"])
    shutil.rmtree(bench.logs)
    assert (await runner.run(text)).status == "fail"
    found = await runner.resume(bench.logs)
    assert (found.status, found.completed_nodes) == (whole.status, whole.completed_nodes)
    assert bench.trace[3:] == ["a", "b", "b", "c"]


@row("Stylesheet applies model override to nodes by shape")
async def _stylesheet(bench: Bench) -> None:
    sheet = "box { llm_model: m-box; } #b { llm_model: m-b; }"
    text = line("a; b;", "a", "b", graph=f'goal="g", model_stylesheet="{sheet}"')
    found = prepare(text).require_valid()
    assert (found.stages["a"].text("llm_model"), found.stages["b"].text("llm_model")) == ("m-box", "m-b")


@row("Prompt variable expansion ($goal) works")
async def _goal(bench: Bench) -> None:
    await bench.run(line('a [prompt="Do $goal, all of $goal"];', "a"))
    assert bench.prompts["a"] == "Do ship it, all of ship it"
    assert (bench.logs / "a" / "prompt.md").read_text() == "Do ship it, all of ship it"


@row("Parallel fan-out and fan-in complete correctly")
async def _parallel(bench: Bench) -> None:
    text = dot(
        "p [shape=component]; a; b; j [shape=tripleoctagon]; after;",
        "start -> p; p -> a -> j; p -> b -> j; j -> after -> done",
    )
    found = await bench.run(text, a=fail())
    assert found.succeeded
    assert sorted(bench.trace[:2]) == ["a", "b"]
    assert bench.trace[2:] == ["after"]
    assert [(r["id"], r["outcome"]) for r in found.context["parallel.results"]] == [
        ("a", "fail"),
        ("b", "success"),
    ]
    assert found.context["parallel.fan_in.best_id"] == "b"


@row("Custom handler registration and execution works")
async def _custom(bench: Bench) -> None:
    class Mine:
        def execute(self, node: Stage, context: PipelineContext, graph: Any, logs_root: Path) -> StageOutcome:
            return StageOutcome(context_updates={"mine": [node.id, graph.goal, logs_root == bench.logs]})

    runner = bench.runner()
    runner.register_handler("my.type", Mine())
    found = await runner.run(line('a [type="my.type"];', "a"))
    assert found.context["mine"] == ["a", "ship it", True]


@row("Pipeline with 10+ nodes completes without errors")
async def _many(bench: Bench) -> None:
    names = [f"s{i}" for i in range(25)]
    found = await bench.run(line("".join(f"{name};" for name in names), *names))
    assert found.completed_nodes == ("start", *names, "done")


@pytest.mark.parametrize("case", ROWS)
async def test_a_row_of_the_parity_matrix(case: str, hf: Holdfast, tmp_path: Path) -> None:
    await ROWS[case](Bench(hf, tmp_path))


def test_the_matrix_has_all_its_rows() -> None:
    assert len(ROWS) == 22


@pytest.mark.covers("ATTRACTOR-PROOF-02", "AT-248", "AT-249", "AT-250", "AT-251", "AT-252", "AT-253")
async def test_the_smoke_test_of_the_specification(hf: Holdfast, tmp_path: Path) -> None:
    pipeline = parse(SMOKE, strict=True).pipeline
    assert pipeline.goal == "Create a hello world Python script"
    assert (len(pipeline.stages), len(pipeline.links)) == (5, 6)
    assert errors(SMOKE) == []
    found = await Bench(hf, tmp_path).run(SMOKE)
    assert found.status == "success"
    assert "implement" in found.completed_nodes
    for stage in ("plan", "implement", "review"):
        for name in ("prompt.md", "response.md", "status.json"):
            assert (tmp_path / stage / name).stat().st_size > 0
    assert found.node_outcomes["implement"] == "success"
    saved = json.loads((tmp_path / "checkpoint.json").read_text())
    assert saved["current_node"] == "done"
    assert {"plan", "implement", "review"} <= set(saved["completed_nodes"])
    assert saved["goal_gate_status"] == {"implement": True}
