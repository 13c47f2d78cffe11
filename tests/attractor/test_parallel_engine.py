"""Parallel stages: branches are scopes of their own, joined once, stopped where others were enough."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest

from holdfast import Context, Holdfast, Outcome
from holdfast.telemetry import NodePlaceFilter
from tests.attractor.stages import Stages
from tests.flows.test_two_folds import assert_alike

pytestmark = pytest.mark.anyio

ENDS = "start [shape=Mdiamond]; end [shape=Msquare]; fan [shape=component]; join [shape=tripleoctagon];"


def pipeline(body: str, **said: Any) -> Stages:
    return Stages(f"digraph p {{ {ENDS} {body} }}", **said)


TWO = "start -> fan; fan -> a1 -> a2 -> join; fan -> b1 -> join; join -> end;"


@pytest.mark.covers(
    "AT-186", "AT-187", "AT-188", "AT-189", "AT-192", "AT-A25", "ATTRACTOR-RUN-01", "ATTRACTOR-PROOF-04"
)
async def test_branches_of_many_stages_run_each_stage_once_and_join_once(hf: Holdfast) -> None:
    by: list[str] = []

    async def first(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        by.append(ctx.came_by)
        return Outcome(update={"k": "a"})

    async def last(ctx: Context, seen: dict[str, Any]) -> Outcome:
        by.append(ctx.came_by)
        assert (seen["k"], seen["from"]) == ("a", "above")
        return Outcome("success", {"score": 3, "n": 1}, notes="done well")

    stages = pipeline(TWO, a1=first, a2=last, start=Outcome(update={"from": "above"}))
    result = (await stages.run(hf)).expect()
    assert by == ["fan->a1", "a1->a2"]
    assert Counter(stages.trace) == Counter(
        ["start", "fan.1[0]/a1", "fan.1[0]/a2", "fan.1[1]/b1", "join", "end"]
    )
    assert result.state["parallel.results"] == [
        {
            "id": "a1",
            "outcome": "success",
            "notes": "done well",
            "context_updates": {"k": "a", "score": 3, "n": 1},
            "score": 3,
            "failure_reason": "",
        },
        {
            "id": "b1",
            "outcome": "success",
            "notes": "",
            "context_updates": {},
            "score": 0,
            "failure_reason": "",
        },
    ]
    assert "k" not in result.state


@pytest.mark.covers("AT-193", "ATTRACTOR-PROOF-04", "ATTRACTOR-RUN-01")
async def test_fan_outs_inside_branches_run_each_stage_once(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> fan; fan -> in; fan -> b -> join; in [shape=component]; in -> x1 -> x2 -> meet;
        in -> y -> meet; meet [shape=tripleoctagon]; meet -> after -> join; join -> end""",
        meet=Outcome(update={"inner": "met"}),
    )
    result = (await stages.run(hf)).expect()
    inner = "fan.1[0]/in.1"
    assert Counter(stages.trace) == Counter(
        f"""start {inner}[0]/x1 {inner}[0]/x2 {inner}[1]/y fan.1[0]/meet fan.1[0]/after fan.1[1]/b
        join end""".split()
    )
    first, second = result.state["parallel.results"]
    assert first["context_updates"]["inner"] == "met"
    assert [r["id"] for r in first["context_updates"]["parallel.results"]] == ["x1", "y"]
    assert second["id"] == "b"


@pytest.mark.covers("AT-189", "AT-A22")
@pytest.mark.parametrize("failing", [["a1"], ["a1", "b1"]])
async def test_failed_branches_are_collected_and_the_join_is_a_partial_success(
    hf: Holdfast, failing: list[str]
) -> None:
    said = {name: Outcome("fail", {"left": name}, reason=f"{name} is red") for name in failing}
    stages = pipeline(TWO + "fan -> join [label=x];", **said)
    result = (await stages.run(hf)).expect()
    results = result.state["parallel.results"]
    assert [r["outcome"] for r in results] == ["fail", "fail" if len(failing) > 1 else "success"]
    assert results[0]["failure_reason"] == "a1 is red"
    assert results[0]["context_updates"] == {"left": "a1"}
    service = await hf.service()
    fan = next(e for e in await service.events(result.run_id) if e.node == "fan" and "outcome" in e.data)
    assert fan.data["outcome"] == "partial_success"
    assert stages.trace[-2:] == ["join", "end"]


@pytest.mark.covers("AT-A21")
async def test_a_branch_that_fails_by_an_edge_to_the_join_has_failed(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> fan; fan -> a; fan -> b -> join; a -> join [condition="outcome=success"];
        a -> join [condition="outcome=fail"]; join -> end""",
        a=Outcome("fail", reason="red"),
    )
    result = (await stages.run(hf)).expect()
    first, _ = result.state["parallel.results"]
    assert (first["outcome"], first["failure_reason"]) == ("fail", "red")


@pytest.mark.covers("AT-A21")
async def test_branches_without_a_fan_in_end_where_all_ways_meet(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> fan; fan -> a; fan -> b; a -> c; a -> d [weight=1]; c -> meet; d -> meet; b -> meet;
        meet -> end; join -> end; start -> join [weight=-1]"""
    )
    (await stages.run(hf)).expect()
    assert Counter(stages.trace) == Counter(
        ["start", "fan.1[0]/a", "fan.1[0]/d", "fan.1[1]/b", "meet", "end"]
    )


@pytest.mark.covers("AT-A21")
async def test_a_branch_may_turn_in_itself_and_ends_where_it_would_leave_the_fan_out(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> plan -> fan; fan -> a; fan -> b -> join; a -> check; check -> a [label=again];
        check -> join [label=ok]; b -> plan [condition="outcome=fail"]; join -> end""",
        check=[Outcome(label="again"), Outcome(label="ok")],
        b=Outcome("fail", reason="red"),
    )
    result = (await stages.run(hf)).expect()
    assert Counter(stages.trace)["fan.1[0]/a"] == 2
    assert Counter(stages.trace)["plan"] == 1
    assert [r["outcome"] for r in result.state["parallel.results"]] == ["success", "fail"]


# ---------------------------------------------------------------------- policies


class Race:
    """Stages that wait until they are let go, and tell when they are stopped."""

    def __init__(self) -> None:
        self.stopped: list[str] = []
        self.under_way = 0
        self.most = 0

    async def for_ever(self, ctx: Context, _seen: dict[str, Any]) -> Outcome:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.append(ctx.node)
            raise
        return Outcome()

    async def a_moment(self, _ctx: Context, _seen: dict[str, Any]) -> Outcome:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0.01)
        self.under_way -= 1
        return Outcome()


@pytest.mark.covers("AT-190", "ATTRACTOR-RUN-02")
async def test_the_first_success_stops_the_others_for_good(hf: Holdfast) -> None:
    race = Race()

    async def asks(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        await ctx.ask("Nobody answers this", options=["ok"])
        return Outcome()

    async def wins(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
        await asyncio.sleep(0.05)
        return Outcome(update={"won": True})

    stages = pipeline(
        """start -> fan; fan [join_policy=first_success]; fan -> slow -> late -> join; fan -> asks -> join;
        fan -> bad -> join; fan -> wins -> join; join -> end""",
        slow=race.for_ever,
        asks=asks,
        bad=Outcome("fail", reason="no"),
        wins=wins,
    )
    result = (await stages.run(hf)).expect()
    assert race.stopped == ["slow"]
    assert [r["id"] for r in result.state["parallel.results"]] == ["bad", "wins"]
    assert stages.trace.count("join") == 1
    service = await hf.service()
    (hold,) = await service.holds(result.run_id, open_only=False)
    assert hold.status == "cancelled"
    dropped = [e.data["branch"] for e in await service.events(result.run_id) if e.type == "branch.dropped"]
    assert dropped == [0, 1]
    story = await service.story(result.run_id)
    states = {chapter.label: chapter.state for chapter in story.visits}
    assert (states["fan.1[0]/slow"], states["fan.1[3]/wins"]) == ("abandoned", "done")


@pytest.mark.covers("AT-190")
async def test_no_success_is_a_failure_with_the_results_in_the_context(hf: Holdfast) -> None:
    stages = pipeline(
        TWO + "fan [join_policy=first_success]", a1=Outcome("fail"), b1=Outcome("partial_success")
    )
    result = await stages.run(hf)
    assert result.error is not None
    assert "first_success needs 1" in result.error.message
    assert (result.failed_node, len(result.state["parallel.results"])) == ("fan", 2)


@pytest.mark.parametrize(
    ("policy", "failing", "outcome"),
    [
        ("join_policy=k_of_n, join_k=2", 1, "success"),
        ("join_policy=k_of_n, join_k=3", 1, "fail"),
        ("join_policy=quorum", 1, "success"),
        ("join_policy=quorum", 2, "fail"),
        ("join_policy=quorum, join_quorum=0.9", 1, "fail"),
        ("join_policy=something", 3, "success"),
        ("error_policy=ignore", 1, "success"),
        ("error_policy=fail_fast", 1, "fail"),
    ],
)
@pytest.mark.covers("AT-191")
async def test_policies_judge_what_the_branches_came_to(
    hf: Holdfast, policy: str, failing: int, outcome: str
) -> None:
    said = {f"s{i}": Outcome("fail", reason="red") for i in range(failing)}
    branches = " ".join(f"fan -> s{i} -> join;" for i in range(3))
    stages = pipeline(f"start -> fan; fan [{policy}]; {branches} join -> end", **said)
    result = await stages.run(hf)
    assert result.status == ("failed" if outcome == "fail" else "completed")
    if policy == "error_policy=ignore":
        assert [r["id"] for r in result.state["parallel.results"]] == ["s1", "s2"]


async def test_the_first_failure_stops_the_others_where_it_is_to_be_fast(hf: Holdfast) -> None:
    race = Race()
    stages = pipeline(
        TWO + "fan [error_policy=fail_fast, retry_target=mend]; mend -> end; start -> mend [weight=-1]",
        a1=race.for_ever,
        b1=Outcome("fail", reason="red"),
    )
    (await stages.run(hf)).expect()
    assert race.stopped == ["a1"]
    assert stages.trace[-2:] == ["mend", "end"]


async def test_the_run_fails_with_the_first_failure_while_others_are_at_work(hf: Holdfast) -> None:
    race = Race()
    stages = pipeline(
        TWO + "fan [error_policy=fail_fast]", a1=race.for_ever, b1=Outcome("fail", reason="red")
    )
    result = await stages.run(hf)
    assert (result.status, result.failed_node) == ("failed", "fan")
    assert race.stopped == ["a1"]


@pytest.mark.covers("AT-186", "AT-199")
@pytest.mark.parametrize(("limit", "most"), [("", 4), ("max_parallel=2", 2)])
async def test_no_more_branches_are_under_way_than_may_be(hf: Holdfast, limit: str, most: int) -> None:
    race = Race()
    branches = " ".join(f"fan -> s{i} -> join;" for i in range(7))
    stages = pipeline(
        f"start -> fan; fan [{limit}]; {branches} join -> end",
        **{f"s{i}": race.a_moment for i in range(7)},
    )
    result = (await stages.run(hf)).expect()
    assert race.most == most
    assert [r["id"] for r in result.state["parallel.results"]] == [f"s{i}" for i in range(7)]


@pytest.mark.covers("AT-185")
async def test_branches_that_take_longer_than_their_stage_may_are_stopped_and_it_fails(
    hf: Holdfast,
) -> None:
    race = Race()
    stages = pipeline(
        TWO + "fan [timeout=50ms, retry_target=mend]; mend -> end; start -> mend [weight=-1]",
        a1=race.for_ever,
        b1=Outcome(update={"k": 1}),
    )
    result = (await stages.run(hf)).expect()
    assert race.stopped == ["a1"]
    assert stages.trace[-2:] == ["mend", "end"]
    assert [r["id"] for r in result.state["parallel.results"]] == ["b1"]
    service = await hf.service()
    failed = [e for e in await service.events(result.run_id) if e.type == "node.failed"]
    assert [(e.node, e.data["error"]["code"]) for e in failed] == [("fan", "node_timeout")]
    await assert_alike(hf, result.run_id)
    quick = pipeline(TWO + "fan [timeout=1h]")
    (await quick.run(hf)).expect()


async def test_all_branches_run_again_when_the_parallel_stage_is_retried(hf: Holdfast) -> None:
    stages = pipeline(
        TWO + "fan [join_policy=first_success, max_retries=1]",
        a1=[Outcome("fail"), Outcome()],
        b1=[Outcome("fail"), Outcome("fail")],
    )
    (await stages.run(hf)).expect()
    assert stages.trace.count("fan.1~1[0]/a1") == 1


# ---------------------------------------------------------------------- waits, gates, counters


@pytest.mark.covers("ATTRACTOR-RUN-01")
async def test_branches_that_wait_for_people_park_and_go_on_one_by_one(hf: Holdfast) -> None:
    async def asks(ctx: Context, _seen: dict[str, Any]) -> Outcome:
        reply = await ctx.ask(f"{ctx.node}?", options=["yes", "no"])
        return Outcome(update={"said": reply.decision})

    stages = pipeline(TWO, a1=asks, b1=asks)
    result = await stages.run(hf)
    assert result.status == "pending_input"
    assert sorted(hold.prompt for hold in result.holds) == ["a1?", "b1?"]
    service = await hf.service()
    for hold in sorted(result.holds, key=lambda each: each.prompt, reverse=True):
        await service.answer(hold.id, "yes")
        result = await stages.go_on(hf, result.run_id)
    result.expect()
    assert stages.trace.count("join") == 1
    assert [r["context_updates"] for r in result.state["parallel.results"]] == [{"said": "yes"}] * 2


async def test_large_values_come_whole_into_branches_that_open_late_and_out_of_them(hf: Holdfast) -> None:
    large = "long " * 60_000
    seen: list[bool] = []

    async def asks(ctx: Context, context: dict[str, Any]) -> Outcome:
        await ctx.ask(f"{ctx.node}?", options=["yes"])
        seen.append(context["large"] == large)
        return Outcome(update={"made": large + ctx.node})

    stages = pipeline(TWO + "fan [max_parallel=1]", start=Outcome(update={"large": large}), a1=asks, b1=asks)
    result = await stages.run(hf)
    service = await hf.service()
    for _ in range(2):
        (hold,) = result.holds
        await service.answer(hold.id, "yes")
        result = await stages.go_on(hf, result.run_id)
    made = [r["context_updates"]["made"] for r in result.expect().state["parallel.results"]]
    assert (made, seen) == ([large + "a1", large + "b1"], [True, True])


@pytest.mark.covers("AT-A10")
async def test_a_goal_gate_in_a_branch_is_checked_at_the_exit(hf: Holdfast) -> None:
    stages = pipeline(
        TWO + "a2 [goal_gate=true, retry_target=plan]; start -> plan [weight=-1]; plan -> fan",
        a2=[Outcome("fail", reason="red"), Outcome()],
    )
    (await stages.run(hf)).expect()
    assert stages.trace.count("end") == 2
    assert stages.trace.count("plan") == 1
    assert "fan.2[0]/a2" in stages.trace


@pytest.mark.covers("ATTRACTOR-BOUND-02")
async def test_a_loop_in_a_branch_that_does_not_end_fails_that_branch_alone(hf: Holdfast) -> None:
    stages = pipeline(
        """start -> fan; fan -> a; fan -> b -> join; a [max_visits=3]; a -> a; a -> join [weight=-1];
        join -> end"""
    )
    result = (await stages.run(hf)).expect()
    first, second = result.state["parallel.results"]
    assert "visited 3 times" in first["failure_reason"]
    assert second["outcome"] == "success"


async def test_a_run_is_forked_from_inside_a_branch(hf: Holdfast) -> None:
    stages = pipeline(TWO, a1=Outcome(update={"k": 1}))
    result = (await stages.run(hf)).expect()
    service = await hf.service()
    inside = next(c for c in await service.checkpoints(result.run_id, limit=0) if c.node == "a1")
    fork = await service.fork(result.run_id, inside.seq)
    again = (await stages.go_on(hf, fork.id)).expect()
    assert again.state["parallel.results"] == result.state["parallel.results"]


async def test_code_of_a_branch_that_has_ended_may_still_log(hf: Holdfast) -> None:
    """A task that a handler leaves behind, or that the recorder begins on its behalf: a log line without a
    place is no error, and must not end the run."""
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    handler.addFilter(NodePlaceFilter())
    log, joined = logging.getLogger("of a handler"), asyncio.Event()
    log.addHandler(handler)
    left: list[asyncio.Task[None]] = []

    async def later() -> None:
        log.warning("in the branch")
        await joined.wait()
        log.warning("after it")

    async def begin(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
        left.append(asyncio.create_task(later()))
        await asyncio.sleep(0)
        return Outcome()

    async def end(_ctx: Context, _seen: dict[str, Any]) -> Outcome:
        joined.set()
        await asyncio.wait(left)
        return Outcome()

    try:
        (await pipeline(TWO, a1=begin, end=end).run(hf)).expect()
        await left[0]
    finally:
        log.removeHandler(handler)
    assert [(each.getMessage(), getattr(each, "node", None)) for each in seen] == [
        ("in the branch", "a1"),
        ("after it", None),
    ]
