"""The engine walks lowered pipelines: which edge is taken, what a failure leads to, what the context says."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from tests.attractor.stages import Stages
from tests.flows.test_two_folds import assert_alike

pytestmark = pytest.mark.anyio

ENDS = "start [shape=Mdiamond]; end [shape=Msquare];"


def pipeline(body: str, **said: Any) -> Stages:
    return Stages(f"digraph p {{ {ENDS} {body} }}", **said)


async def way(stages: Stages, hf: Holdfast) -> list[str]:
    (await stages.run(hf)).expect()
    return stages.trace


@pytest.mark.covers("AT-57", "AT-58", "AT-110")
async def test_a_condition_that_holds_beats_weights_and_the_heavier_of_two_wins(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a; a -> w [weight=99]; a -> x [condition="outcome=success", weight=1];
        a -> z [condition="context.k=v", weight=2]; a -> y [condition="context.k=v", weight=2];
        w -> end; x -> end; y -> end; z -> end""",
        a=Outcome(update={"k": "v"}),
    )
    assert await way(stages, hf) == ["start", "a", "y", "end"]


@pytest.mark.covers("AT-59", "AT-60", "AT-61", "AT-62")
async def test_the_preferred_label_is_taken_first_declared_and_never_by_a_conditional_edge(
    hf: Holdfast,
) -> None:
    stages = pipeline(
        """start -> a; a -> c [label="Fix it", condition="outcome=fail"]; a -> z [label="[F] fix it"];
        a -> b [label="F) FIX IT"]; a -> w [weight=9]; c -> end; z -> end; b -> end; w -> end""",
        a=Outcome(label="F - Fix It "),
    )
    assert await way(stages, hf) == ["start", "a", "z", "end"]


@pytest.mark.covers("AT-63", "AT-64", "AT-65")
@pytest.mark.parametrize(("suggested", "taken"), [(["nowhere", "z", "b"], "z"), ([], "y")])
async def test_suggestions_count_in_order_and_else_weight_then_name(
    hf: Holdfast, suggested: list[str], taken: str
) -> None:
    stages = pipeline(
        """start -> a; a -> z [weight=1]; a -> y [weight=1]; a -> b; z -> end; y -> end; b -> end""",
        a=Outcome(suggested=suggested),
    )
    assert await way(stages, hf) == ["start", "a", taken, "end"]


@pytest.mark.covers("AT-66", "AT-67", "AT-69", "AT-A24")
@pytest.mark.parametrize("last", ["", 'a -> b [condition="outcome=fail"]; b -> end'])
async def test_a_dead_end_after_a_success_is_the_end_of_the_pipeline(hf: Holdfast, last: str) -> None:
    stages = pipeline(f"start -> a; start -> end [weight=-1]; {last}")
    assert await way(stages, hf) == ["start", "a"]


@pytest.mark.covers("AT-68", "AT-74", "AT-111")
async def test_a_failure_that_nothing_takes_fails_the_run_with_its_own_reason(hf: Holdfast) -> None:
    stages = pipeline(
        "graph [retry_target=start]; start -> a -> end; a [retry_target=nowhere]",
        a=Outcome("fail", {"why": "seen"}, reason="the tests are red"),
    )
    result = await stages.run(hf)
    assert (result.error and result.error.message, result.failed_node) == ("the tests are red", "a")
    assert stages.trace == ["start", "a"]
    assert result.state["why"] == "seen"


@pytest.mark.covers("AT-71", "AT-A2")
async def test_a_fail_edge_is_taken_before_a_retry_target(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a -> end; a [retry_target=start]; a -> mend [condition="outcome=fail"]; mend -> end""",
        a=Outcome("fail"),
    )
    assert await way(stages, hf) == ["start", "a", "mend", "end"]


@pytest.mark.covers("AT-72", "AT-73", "AT-75", "AT-76")
@pytest.mark.parametrize(
    "targets", ["retry_target=b", "fallback_retry_target=b", "retry_target=nobody, fallback_retry_target=b"]
)
async def test_a_failure_goes_to_its_first_valid_target_after_its_retries(hf: Holdfast, targets: str) -> None:
    stages = pipeline(
        f"start -> b -> a -> end; a [max_retries=1, {targets}]",
        a=[Outcome("retry"), Outcome("retry"), Outcome()],
    )
    assert await way(stages, hf) == ["start", "b", "a", "a", "b", "a", "end"]


@pytest.mark.covers("AT-A1", "AT-A2")
async def test_a_diamond_passes_the_failure_on_and_its_own_edges_route_it(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a -> gate; gate [shape=diamond]; gate -> end [condition="outcome=success"];
        gate -> mend [condition="outcome!=success && preferred_label=red"]; mend -> a""",
        a=[Outcome("fail", label="red"), Outcome()],
    )
    assert await way(stages, hf) == ["start", "a", "gate", "mend", "a", "gate", "end"]


@pytest.mark.covers("AT-A2", "AT-68")
async def test_a_diamond_that_no_failure_gets_past_fails_the_run_with_the_stage_s_reason(
    hf: Holdfast,
) -> None:
    stages = pipeline(
        'start -> a -> gate; gate [shape=diamond]; gate -> end [condition="outcome=success"]',
        a=Outcome("fail", reason="red"),
    )
    result = await stages.run(hf)
    assert result.error is not None
    assert result.error.message == "red"


@pytest.mark.covers("AT-A16")
async def test_a_word_of_the_pipeline_s_own_routes_and_satisfies_its_gate(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a [weight=1]; a [goal_gate=true]; a -> port [condition="outcome=needs_dod"];
        a -> end; port -> end""",
        a=Outcome("needs_dod"),
    )
    assert await way(stages, hf) == ["start", "a", "port", "end"]


@pytest.mark.covers("AT-A31")
async def test_what_is_skipped_leaves_no_outcome_and_satisfies_no_gate(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a -> b -> end; b [goal_gate=true]""", a=Outcome("partial_success"), b=Outcome("skipped")
    )
    result = (await stages.run(hf)).expect()
    assert stages.trace == ["start", "a", "b", "end"]
    assert result.state["current_node"] == "end"
    story = await (await hf.service()).story(result.run_id)
    assert {chapter.state for chapter in story.visits} == {"done"}
    await assert_alike(hf, result.run_id)

    async def look(_ctx: Context, seen: dict[str, Any]) -> Outcome:
        assert seen["outcome"] == "partial_success"
        return Outcome()

    again = pipeline(
        "start -> a -> b -> c -> end", a=Outcome("partial_success"), b=Outcome("skipped"), c=look
    )
    assert await way(again, hf) == ["start", "a", "b", "c", "end"]


@pytest.mark.covers("AT-70")
async def test_the_same_pipeline_takes_the_same_way_each_time(hf: Holdfast) -> None:
    body = "start -> a; a -> b; a -> c; a -> d; b -> end; c -> end; d -> end"
    ways = [await way(pipeline(body), hf) for _ in range(3)]
    assert ways == [["start", "a", "b", "end"]] * 3


async def test_a_stage_knows_the_edge_that_led_to_it_also_when_it_is_tried_again(hf: Holdfast) -> None:
    seen: list[str] = []

    async def look(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        seen.append(ctx.came_by)
        return Outcome() if len(seen) > 2 else Outcome("fail")

    stages = pipeline(
        "start -> a [label=x]; start -> a [label=y, weight=1]; a [max_retries=1, retry_target=a]; a -> end",
        a=look,
    )
    await way(stages, hf)
    assert seen == ["start->a#2", "start->a#2", ""]
