"""What stages do: start, exit, codergen, conditional, fan-in, custom ones; timeouts and status files."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from holdfast.attractor.backends.select import SimulationBackend
from holdfast.attractor.context import PipelineContext
from holdfast.attractor.handler import StageVisit
from holdfast.attractor.handlers.fan_in import candidate_named_in, candidates, ranked
from holdfast.attractor.outcome import StageOutcome
from holdfast.attractor.registry import HandlerRegistry
from holdfast.errors import InputError
from holdfast.frontends.dot.document import Pipeline, Stage
from tests.attractor.run import dot, either, line, listed, run, whole, written

pytestmark = pytest.mark.anyio


class Custom:
    """Notes what it was given, and answers what it was told to."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer
        self.calls: list[tuple[Stage, PipelineContext, Pipeline, Path]] = []

    def execute(
        self, node: Stage, context: PipelineContext, graph: Pipeline, logs_root: Path
    ) -> StageOutcome:
        self.calls.append((node, context, graph, logs_root))
        return self.answer(context) if callable(self.answer) else self.answer or StageOutcome()


def registry(**handlers: Any) -> HandlerRegistry:
    return HandlerRegistry(handlers)


@pytest.mark.covers("AT-177", "AT-144", "AT-145", "AT-180", "ATTRACTOR-HANDLER-03", "AT-125")
async def test_without_a_backend_stages_are_simulated(hf: Holdfast, tmp_path: Path) -> None:
    found = await run(hf, line("plan;", "plan"), tmp_path)
    assert found.succeeded
    assert found.completed_nodes == ("start", "plan", "done")
    said = "[Simulated] Response for stage: plan"
    assert (tmp_path / "plan" / "response.md").read_text() == said
    status = json.loads((tmp_path / "plan" / "status.json").read_text())
    assert status["outcome"] == "success"
    assert status["notes"] == "Stage completed: plan"
    assert found.context["last_stage"] == "plan"
    assert found.context["last_response"] == said


@pytest.mark.covers("AT-177")
async def test_the_start_is_found_by_its_shape_first(hf: Holdfast, tmp_path: Path) -> None:
    text = "digraph g { begin [shape=Mdiamond]; start [shape=box, label=x]; exit; begin -> start -> exit }"
    found = await run(hf, text, tmp_path)
    assert found.completed_nodes == ("begin", "start", "exit")


@pytest.mark.covers("AT-178")
async def test_the_prompt_is_the_prompt_or_the_label_with_the_goal_everywhere(
    hf: Holdfast, tmp_path: Path
) -> None:
    stages = 'a [prompt="$goal, then $goal again"]; b [label="Do $goal"];'
    await run(hf, line(stages, "a", "b"), tmp_path)
    assert (tmp_path / "a" / "prompt.md").read_text() == "ship it, then ship it again"
    assert (tmp_path / "b" / "prompt.md").read_text() == "Do ship it"


@pytest.mark.covers("AT-179", "ATTRACTOR-HANDLER-09", "AT-125")
async def test_a_function_answers_with_text(hf: Holdfast, tmp_path: Path) -> None:
    def answer(node: Stage, prompt: str, context: PipelineContext) -> str:
        context.set("context.seen", node.id)
        return prompt.upper() + "!" * 300

    found = await run(hf, line('a [prompt="hi"];', "a"), tmp_path, backend=answer)
    assert found.context["last_response"] == ("HI" + "!" * 300)[:200]
    assert found.context["context.seen"] == "a"
    assert len((tmp_path / "a" / "response.md").read_text()) == 302


@pytest.mark.covers("AT-179", "ATTRACTOR-HANDLER-09", "AT-126", "AT-124")
async def test_a_backends_outcome_is_used_and_written(hf: Holdfast, tmp_path: Path) -> None:
    async def answer(prompt: str) -> StageOutcome:
        return StageOutcome(status="partial_success", preferred_label="B", context_updates={"context.x": [1]})

    seen = Custom()
    text = dot(
        "a; b [type=look]; c [type=look];",
        "start -> a; a -> b [label=A, weight=9]; a -> c [label=B]; b -> done; c -> done",
    )
    found = await run(hf, text, tmp_path, backend=answer, registry=registry(look=seen))
    assert found.completed_nodes == ("start", "a", "c", "done")
    context = seen.calls[0][1]
    assert context.get("context.x") == [1]
    assert context.get("current_node") == "c"
    assert (context.get("outcome"), context.get("preferred_label")) == ("partial_success", "B")
    assert context.get("graph.goal") == "ship it"
    assert json.loads((tmp_path / "a" / "status.json").read_text())["outcome"] == "partial_success"


@pytest.mark.covers("AT-179", "AT-111")
async def test_a_backend_that_raises_fails_its_stage_and_not_the_engine(hf: Holdfast, tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        raise RuntimeError("the model is on fire")

    text = dot(
        'a; fix [shape=parallelogram, tool_command="true"];',
        either("a", "fix"),
    )
    found = await run(hf, text, tmp_path, backend=answer)
    assert found.completed_nodes == ("start", "a", "fix", "done")
    alone = await run(hf, line("a;", "a"), tmp_path / "alone", backend=answer)
    assert alone.status == "fail"
    assert alone.outcome.failure_reason == "the model is on fire"


@pytest.mark.parametrize(
    ("raised", "calls"),
    [
        (ConnectionResetError("reset"), 3),
        (type("Busy", (Exception,), {"status_code": 429})(), 3),
        (type("Down", (Exception,), {"status": 503})(), 3),
        (type("Denied", (Exception,), {"status_code": 401})(), 1),
        (ValueError("bad prompt"), 1),
    ],
)
@pytest.mark.covers("AT-103", "AT-104", "AT-105")
async def test_only_failures_that_may_pass_are_tried_again(
    hf: Holdfast, tmp_path: Path, raised: Exception, calls: int
) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        raise raised

    found = await run(hf, line("a [max_retries=2];", "a"), tmp_path, backend=answer)
    assert (found.status, len(asked)) == ("fail", calls)


@pytest.mark.covers("AT-98", "AT-100", "AT-110")
async def test_a_stage_that_asks_for_another_try_is_asked_anew(hf: Holdfast, tmp_path: Path) -> None:
    answers = iter([StageOutcome(status="retry", failure_reason="not yet"), "done now"])
    found = await run(hf, line("a [max_retries=2];", "a"), tmp_path, backend=lambda prompt: next(answers))
    assert found.succeeded
    assert (tmp_path / "a" / "response.md").read_text() == "done now"
    assert found.context["internal.retry_count.a"] == 0


@pytest.mark.covers("AT-101", "AT-102")
@pytest.mark.parametrize(
    ("more", "status", "shown"),
    [
        ("", "fail", {"outcome": "fail", "failure_reason": "max retries exceeded", "notes": "not yet"}),
        (
            ", allow_partial=true",
            "success",
            {"outcome": "partial_success", "notes": "retries exhausted, partial accepted"},
        ),
    ],
)
async def test_a_stage_that_asks_too_often_ends_as_it_may(
    hf: Holdfast, tmp_path: Path, more: str, status: str, shown: dict[str, str]
) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> StageOutcome:
        asked.append(prompt)
        return StageOutcome(status="RETRY", failure_reason="not yet")

    found = await run(hf, line(f"a [max_retries=1{more}];", "a"), tmp_path, backend=answer)
    assert (found.status, len(asked)) == (status, 2)
    written = json.loads((tmp_path / "a" / "status.json").read_text())
    assert {key: written[key] for key in shown} == shown


@pytest.mark.covers("AT-A17")
async def test_words_of_other_dialects_are_understood(hf: Holdfast, tmp_path: Path) -> None:
    mine = Custom(StageOutcome(status="FAILED", failure_reason="no"))
    found = await run(hf, line("a [type=mine];", "a"), tmp_path, registry=registry(mine=mine))
    assert (found.status, found.context["failure_reason"]) == ("fail", "no")


@pytest.mark.covers("AT-129", "AT-A15")
async def test_a_status_file_that_the_agent_wrote_is_its_outcome(hf: Holdfast, tmp_path: Path) -> None:
    def answer(node: Stage, prompt: str, context: PipelineContext) -> str:
        status = {"outcome": "SUCCEEDED", "preferred_next_label": "B", "notes": "n"}
        if node.id == "a":
            written = json.dumps({**status, "context_updates": {"x.y": 1}})
            (tmp_path / "a" / "status.json").write_text(written)
        return "prose"

    text = dot("a; b; c;", "start -> a; a -> b [label=A]; a -> c [label=B]; b -> done; c -> done")
    found = await run(hf, text, tmp_path, backend=answer)
    assert found.completed_nodes == ("start", "a", "c", "done")
    assert found.context["x.y"] == 1
    status = json.loads((tmp_path / "a" / "status.json").read_text())
    assert status == {
        "outcome": "success",
        "preferred_label": "B",
        "suggested_next_ids": [],
        "context_updates": {"last_stage": "a", "last_response": "prose", "x.y": 1},
        "notes": "n",
    }


@pytest.mark.covers("AT-A15")
async def test_the_backends_outcome_beats_the_status_file(hf: Holdfast, tmp_path: Path) -> None:
    def answer(node: Stage, prompt: str, context: PipelineContext) -> StageOutcome:
        (tmp_path / "a" / "status.json").write_text('{"outcome": "success", "notes": "its own"}')
        return StageOutcome(status="partial_success", notes="mine")

    found = await run(hf, line("a;", "a"), tmp_path, backend=answer)
    assert found.node_outcomes["a"] == "partial_success"
    assert json.loads(written(tmp_path / "a" / "status.json"))["notes"] == "mine"


async def test_a_status_file_that_says_nothing_is_a_failure(hf: Holdfast, tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        (tmp_path / "a" / "status.json").write_text("{half")
        return "prose"

    found = await run(hf, line("a;", "a"), tmp_path, backend=answer)
    assert found.status == "fail"
    assert "status.json is not JSON" in found.outcome.failure_reason


@pytest.mark.covers("AT-129", "AT-A14")
async def test_auto_status_counts_only_where_no_status_was_written(hf: Holdfast, tmp_path: Path) -> None:
    class Silent:
        def __init__(self, text: str = "") -> None:
            self.text = text

        def execute(self, node: Stage, context: PipelineContext, graph: Pipeline, logs_root: Path) -> Any:
            if self.text:
                (logs_root / node.id).mkdir(parents=True, exist_ok=True)
                (logs_root / node.id / "status.json").write_text(self.text)

    async def with_(handler: Silent, stage: str) -> Any:
        logs = tmp_path / str(len(listed(tmp_path)))
        return await run(hf, line(f"a [type=quiet{stage}];", "a"), logs, registry=registry(quiet=handler))

    found = await with_(Silent(), ", auto_status=true")
    status = json.loads((found.logs_root / "a" / "status.json").read_text())
    assert status["notes"] == "auto-status: handler completed without writing status"
    assert (await with_(Silent('{"outcome": "fail"}'), ", auto_status=true")).status == "fail"
    assert (await with_(Silent(), "")).status == "fail"


@pytest.mark.covers("ATTRACTOR-PROOF-12", "AT-A15")
@pytest.mark.parametrize(
    ("stage", "graph", "status"),
    [
        ("goal_gate=true, auto_status=false", "", "fail"),
        ("goal_gate=true", "fail_closed=true", "fail"),
        ("goal_gate=true", "", "success"),
        ("goal_gate=true, auto_status=true", "fail_closed=true", "success"),
    ],
)
async def test_prose_is_no_proof_where_a_goal_gate_is_fail_closed(
    hf: Holdfast, tmp_path: Path, stage: str, graph: str, status: str
) -> None:
    text = line(f"a [{stage}];", "a", graph=graph)
    assert (await run(hf, text, tmp_path, backend=lambda prompt: "It is all done!")).status == status


@pytest.mark.covers("AT-174", "AT-176", "ATTRACTOR-HANDLER-02")
async def test_custom_handlers_are_found_by_type_and_unknown_types_by_shape(
    hf: Holdfast, tmp_path: Path
) -> None:
    mine = Custom(StageOutcome(context_updates={"context.mine": True}))
    stages = 'a [type=mine, colour="red"]; b [type=nobody, shape=parallelogram, tool_command="echo b"];'
    found = await run(hf, line(stages, "a", "b"), tmp_path, registry=registry(mine=mine))
    assert found.succeeded
    assert found.context["context.mine"] is True
    assert found.context["tool.output"] == "b\n"
    node, context, graph, logs = mine.calls[0]
    assert (node.id, node.text("colour"), graph.goal, str(logs)) == ("a", "red", "ship it", whole(tmp_path))
    assert context.get("graph.goal") == "ship it"


@pytest.mark.covers("AT-174", "AT-175")
def test_registering_again_replaces_and_the_default_is_codergen() -> None:
    first, second, usual = Custom(), Custom(), Custom()
    known = HandlerRegistry({"codergen": usual})
    known.register("x", first)
    known.register("x", second)
    assert known.resolve(Stage(id="a", attrs={"type": "x", "shape": "diamond"})) is second
    assert known.resolve(Stage(id="a", attrs={"shape": "cloud"})) is usual
    assert known.resolve(Stage(id="a", attrs={"type": "nobody"})) is usual
    with pytest.raises(InputError, match="without `execute`"):
        known.register("y", object())  # type: ignore[arg-type]


@pytest.mark.covers("AT-175")
async def test_a_built_in_handler_can_be_replaced(hf: Holdfast, tmp_path: Path) -> None:
    mine = Custom(StageOutcome(notes="not a model"))
    found = await run(hf, line("a;", "a"), tmp_path, registry=registry(codergen=mine))
    assert found.succeeded
    assert len(mine.calls) == 1


@pytest.mark.covers("AT-176", "ATTRACTOR-HANDLER-02")
async def test_an_async_handler_may_use_the_durable_side(hf: Holdfast, tmp_path: Path) -> None:
    class Durable:
        async def execute(
            self, node: Stage, context: PipelineContext, graph: Pipeline, logs_root: Path, visit: StageVisit
        ) -> StageOutcome:
            value = await visit.ctx.step("roll", lambda: 4, effect="read")
            context.append_log("rolled")
            return StageOutcome(context_updates={"rolled": value})

    found = await run(
        hf, line("a [type=dice, effect=read];", "a"), tmp_path, registry=registry(dice=Durable())
    )
    assert found.context["rolled"] == 4


@pytest.mark.covers("AT-148", "AT-111")
async def test_updates_that_cannot_be_stored_fail_the_stage_by_their_key(
    hf: Holdfast, tmp_path: Path
) -> None:
    mine = Custom(StageOutcome(context_updates={"context.handle": object()}))
    found = await run(hf, line("a [type=mine];", "a"), tmp_path, registry=registry(mine=mine))
    assert found.status == "fail"
    assert "'context.handle'" in found.outcome.failure_reason


@pytest.mark.covers("AT-111")
async def test_an_outcome_with_odd_values_is_taken_as_text(hf: Holdfast, tmp_path: Path) -> None:
    odd: Any = {"preferred_label": 7, "suggested_next_ids": (1, "done"), "notes": None}
    mine = Custom(StageOutcome(**odd))
    found = await run(hf, line("a [type=mine];", "a"), tmp_path, registry=registry(mine=mine))
    assert found.succeeded


@pytest.mark.covers("AT-128", "AT-A31")
async def test_a_skipped_stage_leaves_no_outcome(hf: Holdfast, tmp_path: Path) -> None:
    mine = Custom(StageOutcome(status="skipped"))
    seen = Custom()
    stages = "a [type=failing]; b [type=mine]; c [type=look];"
    links = 'start -> a; a -> b [condition="outcome=fail"]; b -> c -> done'
    handlers = registry(
        mine=mine, look=seen, failing=Custom(StageOutcome(status="fail", failure_reason="no"))
    )
    found = await run(hf, dot(stages, links), tmp_path, registry=handlers)
    assert found.completed_nodes == ("start", "a", "b", "c", "done")
    assert seen.calls[0][1].get("outcome") == "fail"


@pytest.mark.covers("AT-185")
@pytest.mark.parametrize("kind", ["model", "custom"])
async def test_a_stage_that_takes_too_long_fails(hf: Holdfast, tmp_path: Path, kind: str) -> None:
    class Slow:
        async def execute(self, node: Any, context: Any, graph: Any, logs_root: Any) -> StageOutcome:
            await asyncio.sleep(30)
            return StageOutcome()

    async def slow(prompt: str) -> str:
        await asyncio.sleep(30)
        return ""

    stage = "a [timeout=50ms, type=slow, effect=read];" if kind == "custom" else "a [timeout=50ms];"
    found = await run(hf, line(stage, "a"), tmp_path, backend=slow, registry=registry(slow=Slow()))
    assert found.status == "fail"
    assert found.outcome.failure_reason == "timeout: stage 'a' took longer than 50ms"


RESULTS = [
    {"id": "b", "outcome": "success", "context_updates": {"score": 2}},
    {"id": "a", "outcome": "success", "score": 2},
    {"id": "c", "outcome": "success"},
    {"id": "d", "outcome": "partial_success", "score": 99},
    {"id": "e", "outcome": "fail", "score": 99},
    {"id": "f", "outcome": "retry"},
]


@pytest.mark.covers("AT-195", "AT-A25")
def test_candidates_rank_by_outcome_then_score_then_id() -> None:
    assert [each["id"] for each in ranked(candidates(RESULTS))] == ["a", "b", "c", "d", "f", "e"]


async def fan_in(hf: Holdfast, logs: Path, results: Any, stage: str = "", backend: Any = None) -> Any:
    """A fan-in behind a stage that leaves these results."""
    leave = Custom(StageOutcome(context_updates={} if results is None else {"parallel.results": results}))
    text = line(f"a [type=leave]; join [shape=tripleoctagon{stage}];", "a", "join")
    return await run(hf, text, logs, registry=registry(leave=leave), backend=backend)


@pytest.mark.covers("AT-194")
@pytest.mark.parametrize("results", [None, []])
async def test_a_fan_in_without_results_fails(hf: Holdfast, tmp_path: Path, results: Any) -> None:
    found = await fan_in(hf, tmp_path, results)
    assert found.outcome.failure_reason == "No parallel results to evaluate"


@pytest.mark.covers("AT-195", "AT-197")
async def test_a_fan_in_names_the_best(hf: Holdfast, tmp_path: Path) -> None:
    found = await fan_in(hf, tmp_path, RESULTS)
    assert found.context["parallel.fan_in.best_id"] == "a"
    assert found.context["parallel.fan_in.best_outcome"] == "success"
    notes = json.loads((tmp_path / "join" / "status.json").read_text())["notes"]
    assert notes == "Selected best candidate: a"


@pytest.mark.covers("AT-198", "AT-A22")
async def test_a_fan_in_fails_when_all_failed_and_not_before(hf: Holdfast, tmp_path: Path) -> None:
    failed = [{"id": "x", "outcome": "fail"}, {"id": "y", "outcome": "fail"}]
    assert (await fan_in(hf, tmp_path / "1", failed)).status == "fail"
    some = await fan_in(hf, tmp_path / "2", [*failed, {"id": "z", "outcome": "retry"}])
    assert some.context["parallel.fan_in.best_id"] == "z"


@pytest.mark.covers("AT-196")
async def test_a_fan_in_with_a_prompt_lets_the_model_choose(hf: Holdfast, tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "I compared them. The best candidate is `c`."

    found = await fan_in(hf, tmp_path, RESULTS, ', prompt="Which serves $goal?"', answer)
    assert found.context["parallel.fan_in.best_id"] == "c"
    assert "Which serves ship it?" in asked[-1]
    assert '"id": "e"' not in asked[-1]
    simulated = await fan_in(hf, tmp_path / "s", RESULTS, ', prompt="Which?"', SimulationBackend())
    assert simulated.context["parallel.fan_in.best_id"] == "a"


def test_an_answer_names_a_candidate_as_a_whole_word() -> None:
    living = candidates([{"id": "a"}, {"id": "ab"}])
    found = candidate_named_in("ab is better than anything", living)
    assert found is not None
    assert found["id"] == "ab"
    assert candidate_named_in("nothing here", living) is None
    assert candidate_named_in("a is good, ab is better than a", living) is None
    last = candidate_named_in("I compared a with ab.\n\n**a**\n", living)
    assert last is not None
    assert last["id"] == "a"
