"""Retries, goal gates and bounds of lowered pipelines, as the engine counts them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from holdfast.engine.retry import retry_delay
from tests.attractor.stages import Stages

pytestmark = pytest.mark.anyio

ENDS = "start [shape=Mdiamond]; end [shape=Msquare];"


def pipeline(body: str, **said: Any) -> Stages:
    return Stages(f"digraph p {{ {ENDS} {body} }}", **said)


def policy(attributes: str, graph: str = "") -> Any:
    spec = pipeline(f"graph [label=x{graph}]; start -> a -> end; a [label=y{attributes}]").spec
    return next(node for node in spec.nodes if node.id == "a").retry


# ---------------------------------------------------------------------- policies


@pytest.mark.covers("AT-94", "AT-95", "AT-96", "AT-97")
@pytest.mark.parametrize(
    ("own", "graph", "attempts"),
    [
        ("", "", 1),
        (", max_retries=3", "", 4),
        ("", ", default_max_retries=2", 3),
        ("", ", default_max_retry=2", 3),
        ("", ", default_max_retry=5, default_max_retries=1", 2),
        (", max_retries=0", ", default_max_retries=2", 1),
        (", max_retries=-4", "", 1),
    ],
)
def test_attempts_are_retries_and_one(own: str, graph: str, attempts: int) -> None:
    assert policy(own, graph).attempts == attempts


@pytest.mark.covers("AT-109", "AT-106", "AT-107", "AT-108")
@pytest.mark.parametrize(
    ("preset", "attempts", "waits"),
    [
        ("none", 1, [200]),
        ("standard", 5, [200, 400, 800, 1600, 3200]),
        ("aggressive", 5, [500, 1000, 2000, 4000, 8000]),
        ("linear", 3, [500, 500, 500]),
        ("patient", 3, [2000, 6000, 18000, 54000, 60000, 60000]),
    ],
)
def test_presets_wait_as_the_table_says_within_half_and_one_and_a_half(
    preset: str, attempts: int, waits: list[int]
) -> None:
    found = policy(f", retry_policy={preset}")
    assert found.attempts == attempts
    shares = [
        retry_delay(found, n, f"run {run}", "", "a", 1) / 1000 / wait
        for run in range(200)
        for n, wait in enumerate(waits, 1)
    ]
    assert 0.5 <= min(shares) < 0.55
    assert 1.45 < max(shares) <= 1.5
    assert retry_delay(found, 1, "same") == retry_delay(found, 1, "same")


# ---------------------------------------------------------------------- retrying


@pytest.mark.covers("AT-98", "AT-99", "AT-100", "AT-A12")
async def test_a_stage_that_asks_for_it_is_tried_again_and_its_counter_is_reset_by_success(
    hf: Holdfast,
) -> None:
    seen: list[int] = []

    async def work(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        seen.append(ctx.failures)
        return Outcome("retry") if len(seen) in (1, 3, 4) else Outcome()

    async def look(_ctx: Context, context: dict[str, Any]) -> Outcome:
        assert context["internal.retry_count.a"] == (0 if len(seen) == 2 else 1)
        return Outcome(label="again" if len(seen) == 2 else "out")

    stages = pipeline(
        """start -> a; a [max_retries=1]; a -> b; a -> b [condition="outcome=fail"];
        b -> a [label=again]; b -> end [label=out]""",
        a=work,
        b=look,
    )
    result = (await stages.run(hf)).expect()
    assert seen == [0, 1, 0, 1]
    assert result.state["internal.retry_count.a"] == 1


@pytest.mark.covers("AT-101", "AT-76")
async def test_a_stage_that_asks_once_too_often_has_failed(hf: Holdfast) -> None:
    stages = pipeline("start -> a -> end", a=Outcome("retry", reason="not yet"))
    result = await stages.run(hf)
    assert result.error is not None
    assert (result.error.message, result.error.detail) == ("max retries exceeded", "not yet")


@pytest.mark.covers("AT-102")
async def test_a_stage_that_asks_once_too_often_has_partly_succeeded_where_that_is_allowed(
    hf: Holdfast,
) -> None:
    stages = pipeline(
        """start -> a; a [allow_partial=true]; a -> end [condition="outcome=partial_success"]""",
        a=Outcome("retry", {"half": True}),
    )
    result = (await stages.run(hf)).expect()
    assert stages.trace == ["start", "a", "end"]
    service = await hf.service()
    notes = [e.data["notes"] for e in await service.events(result.run_id) if e.data.get("notes")]
    assert notes == [{"notes": "retries exhausted, partial accepted"}]


@pytest.mark.covers("AT-A3", "AT-104")
@pytest.mark.parametrize(("final", "tried"), [(False, 2), (True, 1)])
async def test_a_failure_is_tried_again_where_retries_are_asked_for_and_never_when_it_is_final(
    hf: Holdfast, final: bool, tried: int
) -> None:
    stages = pipeline("start -> a -> end; a [max_retries=1]", a=Outcome("fail", reason="no", final=final))
    result = await stages.run(hf)
    assert stages.trace == ["start", *["a"] * tried]
    assert result.error is not None
    assert result.error.message == "no"


@pytest.mark.covers("AT-A3", "AT-97")
async def test_a_failure_is_not_tried_again_where_nobody_asked_for_it(hf: Holdfast) -> None:
    stages = pipeline("start -> a -> end", a=Outcome("fail"))
    await stages.run(hf)
    assert stages.trace == ["start", "a"]


# ---------------------------------------------------------------------- goal gates


@pytest.mark.covers("AT-112", "AT-A6", "AT-117")
@pytest.mark.parametrize(
    ("graph", "own"),
    [
        ("retry_target=x, fallback_retry_target=y", "retry_target=b, fallback_retry_target=x"),
        ("retry_target=x", "retry_target=nobody, fallback_retry_target=b"),
        ("retry_target=b, fallback_retry_target=x", "label=z"),
        ("retry_target=nobody, fallback_retry_target=b", "label=z"),
    ],
)
async def test_an_unmet_gate_sends_back_from_the_exit_to_the_first_valid_target(
    hf: Holdfast, graph: str, own: str
) -> None:
    stages = pipeline(
        f"""graph [{graph}]; start -> b -> a; a [goal_gate=true, {own}]; a -> end [condition="outcome=fail"];
        a -> end; x -> end; y -> end; start -> x [weight=-1]; start -> y [weight=-1]""",
        a=[Outcome("fail"), Outcome("partial_success")],
    )
    result = (await stages.run(hf)).expect()
    assert stages.trace == ["start", "b", "a", "end", "b", "a", "end"]
    assert result.status == "completed"


@pytest.mark.covers("AT-113", "AT-114", "AT-116")
async def test_gates_that_are_met_or_were_never_visited_let_the_pipeline_end(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a; a [goal_gate=true]; a -> end [weight=1]; a -> b; b [goal_gate=true]; b -> end""",
        a=Outcome("partial_success"),
    )
    (await stages.run(hf)).expect()
    assert stages.trace == ["start", "a", "end"]


@pytest.mark.covers("AT-115")
async def test_an_unmet_gate_without_a_target_fails_the_run(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a; a [goal_gate=true]; a -> end [condition="outcome=fail"]""", a=Outcome("fail")
    )
    result = await stages.run(hf)
    assert result.error is not None
    assert result.error.message == "Goal gate unsatisfied and no retry target"
    assert (result.failed_node, stages.trace) == ("a", ["start", "a", "end"])


@pytest.mark.covers("AT-A10", "ATTRACTOR-BOUND-01")
async def test_an_unmet_gate_is_not_forgotten_when_the_next_pass_goes_round_it(hf: Holdfast) -> None:
    stages = pipeline(
        """graph [max_goal_jumps=3]; start -> b; b -> a [label=first]; b -> end [label=later];
        a [goal_gate=true, retry_target=b]; a -> end [condition="outcome=fail"]""",
        b=[Outcome(label="first"), *[Outcome(label="later")] * 5],
        a=Outcome("fail"),
    )
    result = await stages.run(hf)
    assert result.error is not None
    assert "after 3 retries" in result.error.message
    assert stages.trace.count("b") == 4


# ---------------------------------------------------------------------- bounds


@pytest.mark.covers("ATTRACTOR-BOUND-01", "AT-A11")
async def test_goal_jumps_end_by_themselves_and_count_apart_from_retries(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> a; a [goal_gate=true, retry_target=a]; a -> end [condition="outcome=fail"]""",
        a=Outcome("fail"),
    )
    result = await stages.run(hf)
    assert result.error is not None
    assert "after 10 retries" in result.error.message
    assert stages.trace.count("a") == 11


@pytest.mark.covers("ATTRACTOR-BOUND-02")
@pytest.mark.parametrize(
    ("where", "limit"), [("", 100), ("graph [max_visits=7];", 7), ("a [max_visits=5];", 5)]
)
async def test_a_loop_ends_by_itself(hf: Holdfast, where: str, limit: int) -> None:
    stages = pipeline(f"{where} start -> a; a -> a; a -> end [weight=-1]")
    result = await stages.run(hf)
    assert result.error is not None
    assert f"visited {limit} times" in result.error.message
    assert stages.trace.count("a") == limit


@pytest.mark.covers("ATTRACTOR-BOUND-06", "AT-118", "AT-A11")
async def test_counters_and_gates_go_on_when_the_run_waits_in_between(hf: Holdfast) -> None:
    tries: list[int] = []

    async def work(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        if not tries:
            await ctx.ask("Go on?", options=["yes"])
        tries.append(ctx.visit)
        return Outcome("fail")

    stages = pipeline(
        """graph [max_goal_jumps=2]; start -> a; a [goal_gate=true, retry_target=b];
        a -> gate [condition="outcome=fail"]; gate -> end; b -> a""",
        a=work,
    )

    async def gate(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        await ctx.ask(f"Gate {ctx.visit}?", options=["yes"])
        return Outcome()

    stages.said["gate"] = gate
    result = await stages.run(hf)
    service = await hf.service()
    for _ in range(4):
        (hold,) = result.holds
        await service.answer(hold.id, "yes")
        result = await stages.go_on(hf, result.run_id)
    assert result.error is not None
    assert "after 2 retries" in result.error.message
    assert tries == [1, 2, 3]
