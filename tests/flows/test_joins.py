"""Branches that run side by side, and how they come together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Result, all_of, any_of, quorum
from holdfast.testing.conformance.flows import add, trace
from holdfast.types.status import HoldStatus
from tests.deadlines import HANG
from tests.flows.conftest import node, visits_of

pytestmark = pytest.mark.anyio
LOG: dict[str, Any] = {"reducers": {"log": "append"}}


async def answer(hf: Holdfast, result: Result, prompt: str, said: str) -> None:
    hold = next(hold for hold in result.holds if hold.prompt == prompt)
    await (await hf.service()).answer(hold.id, said)


@pytest.mark.covers("D-24", "CORE-FLOW-08")
async def test_branch_sees_nothing_of_its_sibling_when_the_sibling_is_done_first(hf: Holdfast) -> None:
    flow = Flow("alone", effect="pure")
    done = asyncio.Event()
    node(flow, "a", {"x": "a"})

    @flow.node
    async def quick() -> dict[str, Any]:
        done.set()
        return {"x": "quick", "y": 1}

    @flow.node
    async def waits(_s: Any) -> None:
        await done.wait()
        await asyncio.sleep(0.002)

    add(flow, "looks", lambda s: {"seen": [s["x"], "y" in s]})
    flow.edge("a", quick)
    flow.chain("a", waits, "looks")
    result = await flow.run({}, on=hf)
    assert result.expect().state == {"x": "quick", "y": 1, "seen": ["a", False]}


@pytest.mark.covers("CORE-FLOW-08")
async def test_branches_run_at_the_same_time_when_they_fork(hf: Holdfast) -> None:
    flow = Flow("together", effect="pure")
    met = asyncio.Barrier(3)
    node(flow, "a")
    for name in ("x", "y", "z"):

        async def meets() -> None:
            async with asyncio.timeout(HANG):
                await met.wait()

        flow.node(id=name)(meets)
        flow.edge("a", name)
    assert (await flow.run({}, on=hf)).completed


@pytest.mark.covers("D-24", "G-10", "CORE-FLOW-09")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
async def test_merge_is_the_same_when_branches_arrive_in_another_order(
    hf: Holdfast, order: tuple[int, ...]
) -> None:
    flow = Flow("order", effect="pure", **LOG)
    node(flow, "a")
    names = ["p", "q", "r"]
    for name, rank in zip(names, order, strict=True):
        add(flow, name, {"log": [name], "last": name}, pause=rank * 0.003)
        flow.edge("a", name)
        flow.edge(name, "j")
    node(flow, "j")
    result = await flow.run({"log": ["base"]}, on=hf)
    assert result.expect().state == {"log": ["base", "p", "q", "r"], "last": "r"}


@pytest.mark.covers("D-24", "CORE-ENGINE-09")
async def test_nested_fork_merges_inside_first_when_both_forks_join(hf: Holdfast) -> None:
    flow = Flow("nested", effect="pure", **LOG)
    trace(flow, "a", "l", "l1", "l2", "lj", "r", "j", pause={"l1": 0.004, "l": 0.002})
    for way in (("a", "l", "l1", "lj", "j"), ("l", "l2", "lj"), ("a", "r", "j")):
        flow.chain(*way)
    add(flow, "end", lambda s: {"seen": s["log"]})
    flow.edge("j", "end")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["seen"] == ["a", "l", "l1", "l2", "lj", "r", "j"]


@pytest.mark.covers("G-11", "E10")
async def test_branches_that_never_join_are_all_in_the_result_when_the_run_ends(hf: Holdfast) -> None:
    flow = Flow("open", effect="pure", **LOG)
    trace(flow, "a", "l", "r", pause={"l": 0.003})
    add(flow, "lo", lambda _s: "left")
    flow.chain("a", "l", "lo")
    flow.edge("a", "r")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "l", "r"]
    assert result.artifacts == {"lo": "left"}


@pytest.mark.covers("G-19", "E10", "CORE-FLOW-10", "D-25")
async def test_any_join_goes_on_with_the_first_when_the_others_are_late(hf: Holdfast) -> None:
    flow = Flow("any", effect="pure", **LOG)
    seen: list[Any] = []
    trace(flow, "a", "slow", "quick", pause={"slow": 0.02})
    add(flow, "j", lambda s: seen.append(list(s["log"])) or {"log": ["j"]}, join=any_of())
    trace(flow, "end", pause={"end": 0.04})
    for way in (("a", "slow", "j", "end"), ("a", "quick", "j")):
        flow.chain(*way)
    result = await flow.run({"log": []}, on=hf)
    assert seen == [["a", "quick"]]
    assert result.expect().state["log"] == ["a", "quick", "j", "end"]
    assert await visits_of(hf, result.run_id, "slow") == 1


@pytest.mark.covers("G-19")
async def test_loser_is_cancelled_when_its_join_says_so(hf: Holdfast) -> None:
    flow = Flow("losers", effect="pure", **LOG)
    ended: list[str] = []

    @flow.node
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    trace(flow, "a", "quick")
    trace(flow, "j", join=any_of(cancel_losers=True))
    flow.hold("asks", prompt="loser?", options=["yes"])
    for name in (slow, "quick", "asks"):
        flow.chain("a", name, "j")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "quick", "j"]
    assert ended == ["cancelled"]
    holds = await (await hf.service()).holds(result.run_id, open_only=False)
    assert [hold.status for hold in holds] == [HoldStatus.cancelled]


@pytest.mark.covers("G-19", "CORE-FLOW-11")
async def test_quorum_counts_only_branches_that_fired_when_others_are_skipped(hf: Holdfast) -> None:
    flow = Flow("quorum", effect="pure", **LOG)
    trace(flow, "a", "b", "c", "d", "e", pause={"e": 0.02})
    trace(flow, "j", join=quorum(2))
    flow.edge("a", "b", when="false")
    for name in ("c", "d", "e"):
        flow.edge("a", name)
    for name in ("b", "c", "d", "e"):
        flow.edge(name, "j")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "c", "d", "j"]


@pytest.mark.covers("G-19")
async def test_quorum_that_can_no_longer_be_met_fails_the_run_by_name(hf: Holdfast) -> None:
    flow = Flow("unmet", effect="pure")
    for name in ("a", "b", "c"):
        node(flow, name)
    node(flow, "j", join=quorum(2))
    flow.edge("a", "b")
    flow.edge("a", "c", when="false")
    flow.edge("b", "j")
    flow.edge("c", "j")
    result = await flow.run({}, on=hf)
    assert result.failed
    assert result.error is not None
    assert result.error.code == "join_unsatisfied"
    assert "'j' needs 2" in result.error.message


@pytest.mark.covers("G-19", "CORE-FLOW-12", "E10")
async def test_join_goes_on_with_who_is_there_when_its_time_is_over(hf: Holdfast) -> None:
    flow = Flow("timeout", effect="pure", **LOG)
    trace(flow, "a", "quick")
    joined = asyncio.Event()

    @flow.node
    async def slow() -> dict[str, Any]:
        await joined.wait()
        return {"log": ["slow"]}

    @flow.node(join=all_of(timeout=0.03))
    async def j() -> dict[str, Any]:
        joined.set()
        return {"log": ["j"]}

    for way in (("a", "slow", "j"), ("a", "quick", "j")):
        flow.chain(*way)
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "quick", "j"]


@pytest.mark.covers("G-19")
async def test_join_waits_no_longer_than_needed_when_all_come_in_time(hf: Holdfast) -> None:
    flow = Flow("in-time", effect="pure", **LOG)
    trace(flow, "a", "b", "c", "end", pause={"b": 0.005})
    trace(flow, "j", join=all_of(timeout=20))
    for way in (("a", "b", "j", "end"), ("a", "c", "j")):
        flow.chain(*way)
    async with asyncio.timeout(HANG):
        result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a", "b", "c", "j", "end"]


@pytest.mark.covers("G-45", "Q1", "G-31")
async def test_sibling_keeps_its_finished_write_when_a_branch_waits_for_a_person(hf: Holdfast) -> None:
    flow = Flow("pause", effect="pure", **LOG)
    calls: list[str] = []
    trace(flow, "a")
    flow.hold("ask", prompt="go?", options=["yes", "no"])

    @flow.node(effect="external")
    async def write() -> dict[str, Any]:
        calls.append("write")
        return {"log": ["write"], "receipt": 7}

    trace(flow, "j")
    flow.chain("a", "ask", "j")
    flow.chain("a", write, "j")
    result = await flow.run({"log": []}, on=hf)
    assert result.waiting
    assert result.state["receipt"] == 7
    await answer(hf, result, "go?", "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert result.expect().state["log"] == ["a", "write", "j"]
    assert result.state["decision"] == "yes"
    assert calls == ["write"]


@pytest.mark.covers("G-45")
async def test_two_pauses_are_answered_one_by_one_when_both_branches_wait(hf: Holdfast) -> None:
    flow = Flow("two", effect="pure")
    node(flow, "a")
    flow.hold("left", prompt="left?", options=["yes"], bind="l")
    flow.hold("right", prompt="right?", options=["no"], bind="r")
    node(flow, "j", {"done": True})
    for name in ("left", "right"):
        flow.chain("a", name, "j")
    result = await flow.run({}, on=hf)
    assert len(result.holds) == 2
    await answer(hf, result, "right?", "no")
    result = await flow.resume(result.run_id, on=hf)
    assert result.waiting
    assert [hold.prompt for hold in result.holds] == ["left?"]
    await answer(hf, result, "left?", "yes")
    result = await flow.resume(result.run_id, on=hf)
    assert (result.expect().state["l"], result.state["r"]) == ("yes", "no")


@pytest.mark.covers("G-15", "E3")
async def test_rejoin_runs_and_the_dead_arm_does_not_when_one_arm_is_not_taken(hf: Holdfast) -> None:
    flow = Flow("arms", effect="pure")
    ran: list[str] = []
    for name in ("a", "b", "c", "d", "end"):

        async def work(ctx: Context) -> None:
            ran.append(ctx.node)

        flow.node(id=name)(work)
    flow.edge("a", "b", when="go")
    flow.edge("a", "c", otherwise=True)
    flow.chain("c", "d", "end")
    flow.edge("b", "end")
    assert (await flow.run({"go": True}, on=hf)).completed
    assert ran == ["a", "b", "end"]


@pytest.mark.covers("G-15")
async def test_run_ends_well_when_every_way_on_is_dead(hf: Holdfast) -> None:
    flow = Flow("nothing", effect="pure", **LOG)
    trace(flow, "a", "b", "c", "j")
    flow.edge("a", "b", when="false")
    flow.edge("a", "c", when="false")
    flow.edge("b", "j")
    flow.edge("c", "j")
    result = await flow.run({"log": []}, on=hf)
    assert result.expect().state["log"] == ["a"]


@pytest.mark.covers("D-30", "SAFE-PROOF-01")
async def test_no_timer_is_left_when_a_join_is_complete_before_its_time_limit(hf: Holdfast) -> None:
    flow = Flow("in time", effect="pure")
    for name in ("a", "b"):
        node(flow, name, {name: 1})
    trace(flow, "j", join=all_of(timeout=3600))
    flow.hold("ask", prompt="Continue?", options=["yes"])
    flow.start("a", "b")
    flow.edge("a", "j")
    flow.edge("b", "j")
    flow.edge("j", "ask")
    result = await flow.run({}, on=hf)
    assert result.holds
    # Otherwise it would wake the waiting run for nothing, an hour later.
    assert await (await hf.service()).store.next_timer() is None
