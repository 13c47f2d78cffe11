"""The walk: one token, one edge at a time, goal gates, failure routing."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Outcome, Retry
from holdfast.model.graph import WalkSpec
from holdfast.testing.conformance.flows import add
from tests.flows.conftest import visits_of

pytestmark = pytest.mark.anyio
END = WalkSpec(terminal=True)


def walk(**settings: Any) -> Flow:
    return Flow("walk", effect="pure", traversal="walk", reducers={"log": "append"}, **settings)


def stage(flow: Flow, name: str, outcome: Outcome | None = None, **options: Any) -> str:
    def work(_s: Any) -> Any:
        result = outcome or Outcome()
        return Outcome(
            result.status,
            {"log": [name], **(result.update or {})},
            result.label,
            result.suggested,
            result.reason,
        )

    return add(flow, name, work, **options)


def ends(flow: Flow, *names: str) -> None:
    for name in names:
        stage(flow, name, walk=END)


async def way(flow: Flow, hf: Holdfast, **given: Any) -> list[str]:
    result = await flow.run({"log": [], **given}, on=hf)
    return list(result.expect().state["log"])


@pytest.mark.covers("CORE-ENGINE-03")
async def test_condition_beats_weight_and_label_when_it_holds(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a", Outcome(label="pick", suggested=["s"]))
    ends(flow, "c", "l", "s", "w")
    flow.start("a")
    flow.edge("a", "w", weight=99)
    flow.edge("a", "l", label="pick")
    flow.edge("a", "s")
    flow.edge("a", "c", when="outcome == 'success'")
    assert await way(flow, hf) == ["a", "c"]


@pytest.mark.covers("CORE-ENGINE-03")
async def test_heavier_then_first_by_name_wins_when_several_conditions_hold(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a")
    ends(flow, "x", "y", "z")
    flow.start("a")
    flow.edge("a", "z", when="true", weight=2)
    flow.edge("a", "y", when="true", weight=2)
    flow.edge("a", "x", when="true", weight=1)
    assert await way(flow, hf) == ["a", "y"]


@pytest.mark.covers("CORE-ENGINE-03")
@pytest.mark.parametrize("label", ["Yes", " yes ", "[Y] Yes", "Y) yes", "Y - yes"])
async def test_label_is_compared_without_case_and_accelerator_when_it_is_preferred(
    hf: Holdfast, label: str
) -> None:
    flow = walk()
    stage(flow, "a", Outcome(label="YES", suggested=["s"]))
    ends(flow, "n", "s", "y")
    flow.start("a")
    flow.edge("a", "n", label="No", weight=9)
    flow.edge("a", "s", weight=9)
    flow.edge("a", "y", label=label)
    assert await way(flow, hf) == ["a", "y"]


@pytest.mark.covers("CORE-ENGINE-03")
async def test_suggestions_count_in_their_order_when_no_label_fits(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a", Outcome(label="unknown", suggested=["nowhere", "z", "y"]))
    ends(flow, "x", "y", "z")
    flow.start("a")
    flow.edge("a", "x", weight=9)
    flow.edge("a", "y")
    flow.edge("a", "z")
    assert await way(flow, hf) == ["a", "z"]


@pytest.mark.covers("CORE-ENGINE-03")
async def test_label_and_suggestion_skip_conditional_edges_when_their_condition_fails(
    hf: Holdfast,
) -> None:
    flow = walk()
    stage(flow, "a", Outcome(label="go", suggested=["x"]))
    ends(flow, "x", "y")
    flow.start("a")
    flow.edge("a", "x", when="false", label="go")
    flow.edge("a", "y")
    assert await way(flow, hf) == ["a", "y"]


@pytest.mark.covers("CORE-ENGINE-03")
async def test_weight_then_name_decides_when_nothing_else_does(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a")
    ends(flow, "b", "c", "d")
    flow.start("a")
    flow.edge("a", "d", weight=1)
    flow.edge("a", "c", weight=1)
    flow.edge("a", "b")
    assert await way(flow, hf) == ["a", "c"]


async def test_walk_ends_well_when_no_condition_holds_after_a_success(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a")
    ends(flow, "b")
    flow.start("a")
    flow.edge("a", "b", when="false")
    assert await way(flow, hf) == ["a"]


async def test_function_chooses_in_a_walk_when_it_is_the_condition(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a")
    ends(flow, "b", "c")
    flow.start("a")
    flow.edge("a", "b", when=lambda s: s["n"] > 1)
    flow.edge("a", "c", when=lambda s: s["n"] <= 1)
    assert await way(flow, hf, n=1) == ["a", "c"]
    assert await way(flow, hf, n=2) == ["a", "b"]


async def test_own_outcome_word_is_read_by_conditions_when_a_node_reports_it(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a", Outcome("needs_work"))
    ends(flow, "b", "c")
    flow.start("a")
    flow.edge("a", "b", when="outcome == 'needs_work'")
    flow.edge("a", "c", otherwise=True)
    assert await way(flow, hf) == ["a", "b"]


@pytest.mark.covers("CORE-ENGINE-05")
async def test_failure_follows_its_fail_edge_when_there_is_one(hf: Holdfast) -> None:
    flow = walk(retry_target="b")
    add(flow, "a", lambda _s: 1 / 0)
    ends(flow, "b", "c", "d")
    flow.start("a")
    flow.edge("a", "b", weight=9)
    flow.edge("a", "d", when="outcome == 'success'")
    flow.edge("a", "c", when="outcome == 'fail'")
    result = await flow.run({"log": []}, on=hf)
    assert result.state["log"] == ["c"]


@pytest.mark.covers("CORE-ENGINE-05")
async def test_failure_goes_to_the_retry_target_when_no_edge_takes_it(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "fix")
    add(
        flow, "a", lambda s: 1 / 0 if len(s["log"]) < 3 else {"log": ["a"]}, walk=WalkSpec(retry_target="fix")
    )
    ends(flow, "b")
    flow.start("a")
    flow.edge("fix", "a")
    flow.edge("a", "b")
    assert await way(flow, hf) == ["fix", "fix", "fix", "a", "b"]


@pytest.mark.covers("CORE-ENGINE-05")
async def test_fallback_target_is_taken_when_the_node_names_no_other(hf: Holdfast) -> None:
    flow = walk()
    add(flow, "a", lambda _s: 1 / 0, walk=WalkSpec(fallback_retry_target="rescue"))
    ends(flow, "b", "rescue")
    flow.start("a")
    flow.edge("a", "b")
    assert await way(flow, hf) == ["rescue"]


@pytest.mark.covers("G-27", "G-36")
async def test_failed_stage_runs_again_when_nothing_took_it_and_the_run_is_resumed(hf: Holdfast) -> None:
    flow = walk()
    calls: list[int] = []

    def once(_s: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise ValueError("not yet")
        return {"log": ["a"]}

    add(flow, "a", once)
    ends(flow, "b")
    flow.start("a")
    flow.edge("a", "b")
    result = await flow.run({"log": []}, on=hf)
    assert result.failed
    assert result.error is not None
    assert (result.error.message, result.failed_node) == ("not yet", "a")
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["log"] == ["a", "b"]


@pytest.mark.covers("CORE-ENGINE-04")
async def test_gate_sends_back_until_it_is_met_when_the_walk_reaches_its_end(hf: Holdfast) -> None:
    flow = walk()
    add(flow, "build", lambda s: {"n": s["n"] + 1, "log": ["build"]})

    def check(s: Any) -> Any:
        return Outcome("partial_success" if s["n"] > 2 else "fail", reason="too few")

    add(flow, "check", check, walk=WalkSpec(goal_gate=True, retry_target="build"))
    ends(flow, "end")
    flow.start("build")
    flow.edge("build", "check")
    flow.edge("check", "end", when="outcome == 'fail'")
    flow.edge("check", "end", when="outcome != 'fail'")
    result = await flow.run({"log": [], "n": 0}, on=hf)
    assert result.expect().state["n"] == 3
    assert await visits_of(hf, result.run_id, "end") == 3


@pytest.mark.covers("CORE-ENGINE-04")
async def test_gate_that_is_never_met_fails_the_run_when_its_jumps_are_used_up(hf: Holdfast) -> None:
    flow = walk(max_goal_jumps=2, retry_target="check")
    add(flow, "check", lambda _s: Outcome("fail"), walk=WalkSpec(goal_gate=True))
    ends(flow, "end")
    flow.start("check")
    flow.edge("check", "end", when="outcome == 'fail'")
    result = await flow.run({"log": []}, on=hf)
    assert result.failed
    assert result.error is not None
    assert "goal gate 'check' is not satisfied after 2 retries" in result.error.message
    assert await visits_of(hf, result.run_id, "check") == 3


@pytest.mark.covers("CORE-ENGINE-04")
async def test_gate_without_a_target_fails_the_run_when_it_is_not_met(hf: Holdfast) -> None:
    flow = walk()
    add(flow, "check", lambda _s: Outcome("fail"), walk=WalkSpec(goal_gate=True))
    ends(flow, "end")
    flow.start("check")
    flow.edge("check", "end", when="outcome == 'fail'")
    result = await flow.run({"log": []}, on=hf)
    assert result.error is not None
    assert "no retry target" in result.error.message


@pytest.mark.covers("CORE-ENGINE-04")
async def test_gate_is_ignored_when_the_walk_never_came_to_it(hf: Holdfast) -> None:
    flow = walk()
    stage(flow, "a")
    stage(flow, "gate", walk=WalkSpec(goal_gate=True))
    ends(flow, "end")
    flow.start("a")
    flow.edge("a", "end", weight=1)
    flow.edge("a", "gate")
    flow.edge("gate", "end")
    assert await way(flow, hf) == ["a", "end"]


@pytest.mark.covers("CORE-ENGINE-07")
async def test_counters_go_on_when_the_run_waits_in_between(hf: Holdfast) -> None:
    flow = walk(max_goal_jumps=2, retry_target="ask")
    flow.hold("ask", prompt="again?", options=["yes"])
    add(flow, "check", lambda _s: Outcome("fail"), walk=WalkSpec(goal_gate=True))
    ends(flow, "end")
    flow.start("ask")
    flow.edge("ask", "check")
    flow.edge("check", "end", when="outcome == 'fail'")
    result = await flow.run({"log": []}, on=hf)
    for _ in range(3):
        assert result.waiting
        await (await hf.service()).answer(result.holds[0].id, "yes")
        result = await flow.resume(result.run_id, on=hf)
    assert result.failed
    assert result.error is not None
    assert "not satisfied after 2 retries" in result.error.message


@pytest.mark.covers("CORE-ENGINE-07")
@pytest.mark.parametrize("how", ["node", "flow"])
async def test_visits_are_limited_when_a_cap_is_set(hf: Holdfast, how: str) -> None:
    flow = walk(max_visits=3 if how == "flow" else 0)
    stage(flow, "a", walk=WalkSpec(max_visits=3 if how == "node" else 0))
    stage(flow, "b")
    flow.start("a")
    flow.edge("a", "b")
    flow.edge("b", "a")
    result = await flow.run({"log": []}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "loop_limit"
    assert await visits_of(hf, result.run_id, "a") == 3


@pytest.mark.covers("CORE-ENGINE-02")
async def test_walk_inside_a_flow_ends_and_the_flow_goes_on(hf: Holdfast) -> None:
    inner = walk()
    stage(inner, "a")
    stage(inner, "b", walk=END)
    inner.start("a")
    inner.edge("a", "b")
    flow = Flow("outer", effect="pure")
    flow.subflow("sub", inner, inputs={"log": "start"}, outputs={"log": "state.log"})
    add(flow, "end", {"done": True})
    flow.edge("sub", "end")
    result = await flow.run({"start": ["0"]}, on=hf)
    assert result.expect().state == {"start": ["0"], "log": ["0", "a", "b"], "done": True}


@pytest.mark.covers("CORE-ENGINE-06")
async def test_walk_retries_a_stage_and_its_checkpoint_counts_when_it_keeps_failing(hf: Holdfast) -> None:
    flow = walk()
    attempts: list[int] = []

    async def shaky(ctx: Context) -> Outcome:
        attempts.append(ctx.attempt)
        return Outcome("fail" if len(attempts) < 3 else "success", {"log": ["a"]}, reason="not yet")

    flow.node(id="a", retry=Retry(3, delay=0))(shaky)
    ends(flow, "end")
    flow.edge("a", "end")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "end"]
    assert attempts == [1, 2, 3]
    service = await hf.service()
    retried = [event for event in await service.events(result.run_id) if event.type == "node.retried"]
    assert [event.data["attempt"] for event in retried] == [2, 3]
    assert (await service.latest(result.run_id)).executions[0].attempts == 3


@pytest.mark.covers("CORE-ENGINE-06")
async def test_retry_counter_of_a_stage_begins_anew_when_the_walk_comes_back(hf: Holdfast) -> None:
    flow = walk()
    attempts: list[int] = []

    async def shaky(ctx: Context) -> Outcome:
        attempts.append(ctx.attempt)
        return Outcome("fail" if ctx.attempt == 1 else "success", {"log": ["a"]}, reason="once each time")

    flow.node(id="a", retry=Retry(2, delay=0))(shaky)
    add(flow, "b", lambda s: {"n": s["n"] + 1})
    ends(flow, "end")
    flow.start("a")
    flow.edge("a", "b")
    flow.loop("b", "a", when="n < 2", max=5)
    flow.edge("b", "end", when="n >= 2")
    result = await flow.run({"log": [], "n": 0}, on=hf)
    assert result.expect().state["log"] == ["a", "a", "end"]
    assert attempts == [1, 2, 1, 2]


@pytest.mark.covers("CORE-ENGINE-07", "G-17")
async def test_walk_does_not_go_round_for_ever_when_its_loop_has_a_cap(hf: Holdfast) -> None:
    flow = walk()
    inner, outer = stage(flow, "inner"), stage(flow, "outer")
    ends(flow, "end")
    flow.start(inner)
    flow.loop(inner, inner, when="true", max=2, on_limit="continue")
    flow.edge(inner, outer)
    flow.loop(outer, inner, when="true", max=2)
    flow.edge(outer, "end")
    result = await flow.run({"log": []}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "loop_limit"
    # The inner loop has all its turns again each time the outer one turns.
    assert list(result.state["log"]) == (["inner"] * 3 + ["outer"]) * 3
