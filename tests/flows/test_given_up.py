"""Effects that were under way when their branch was given up: how they ended is unknown, and told (D-32)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Join, Result
from tests.flows.conftest import node
from tests.flows.places import told

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-32", "G-17")]


def racing(lose: Any, **options: Any) -> Flow:
    """`fast` waits until `slow` has begun, and wins the join."""
    flow = Flow("races", effect="pure")
    node(flow, "a")
    lose(flow)
    node(flow, "z", join=Join("any", cancel_losers=True))
    flow.edge("a", "slow")
    flow.edge("a", "fast")
    flow.edge("slow", "z")
    flow.edge("fast", "z")
    return flow


async def unknown(hf: Holdfast, result: Result) -> list[tuple[str, str]]:
    """Told by the events, by the newest checkpoint and by a replay alike."""
    service = await hf.service()
    events = [(e.scope, e.node) for e in await told(hf, result, "node.unknown")]
    last = await service.latest(result.run_id)
    pictured = [(e.scope, e.node) for e in last.executions if e.outcome == "unknown"]
    assert events == pictured
    assert (await service.replay(result.run_id)).same
    return events


@pytest.mark.parametrize(("effect", "lost"), [("external", True), ("write", True), ("read", False)])
async def test_effect_that_lost_its_join_is_reported_as_of_unknown_outcome(
    hf: Holdfast, effect: str, lost: bool
) -> None:
    began = asyncio.Event()

    def lose(flow: Flow) -> None:
        @flow.node(effect=effect)
        async def slow() -> None:
            began.set()
            await asyncio.Event().wait()

        @flow.node
        async def fast() -> None:
            await began.wait()

    result = await racing(lose).run({}, on=hf)
    assert result.completed
    assert await unknown(hf, result) == ([("", "slow")] if lost else [])
    assert len(await told(hf, result, "node.abandoned")) == (0 if lost else 1)


async def test_effects_inside_a_branch_that_lost_are_reported_each(hf: Holdfast) -> None:
    began = asyncio.Semaphore(0)

    def lose(flow: Flow) -> None:
        child = Flow("child", effect="external")

        @child.node
        async def deep() -> None:
            began.release()
            await asyncio.Event().wait()

        flow.map("slow", over="items", body=child, into="out")

        @flow.node
        async def fast() -> None:
            await began.acquire()
            await began.acquire()

    result = await racing(lose).run({"items": [{}, {}]}, on=hf)
    assert result.completed
    assert await unknown(hf, result) == [("slow.1[0]/", "deep"), ("slow.1[1]/", "deep")]


async def test_sub_step_under_way_counts_as_its_node(hf: Holdfast) -> None:
    began = asyncio.Event()

    async def pay() -> None:
        began.set()
        await asyncio.Event().wait()

    def lose(flow: Flow) -> None:
        @flow.script
        async def slow(ctx: Context) -> None:
            await ctx.step("pay", pay, effect="external")

        @flow.node
        async def fast() -> None:
            await began.wait()

    result = await racing(lose).run({}, on=hf)
    assert await unknown(hf, result) == [("", "slow")]


async def test_effects_of_siblings_are_reported_when_their_sub_flow_is_skipped(hf: Holdfast) -> None:
    began = asyncio.Event()
    child = Flow("child", effect="pure")
    node(child, "a")

    @child.node(effect="external")
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    @child.node
    async def breaks() -> None:
        await began.wait()
        raise ValueError("no")

    child.edge("a", slow)
    child.edge("a", breaks)
    flow = Flow("skips", effect="pure")
    flow.subflow("sub", child, on_failure="skip")
    result = await flow.run({}, on=hf)
    assert result.completed
    assert await unknown(hf, result) == [("sub.1[0]/", "slow")]
