"""Timeouts stop the work; a thread, which cannot be stopped, is disowned."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Retry, RunStatus
from tests.flows.places import told

pytestmark = pytest.mark.anyio


@pytest.mark.covers("CORE-FLOW-27", "G-26")
async def test_handler_is_really_stopped_when_its_time_is_over(house: Holdfast) -> None:
    flow = Flow("slow", effect="pure")
    ends: list[str] = []

    @flow.node(timeout="20ms")
    async def slow() -> dict[str, Any]:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ends.append("stopped")
            raise
        ends.append("went on")
        return {"late": True}

    @flow.node
    async def after() -> dict[str, Any]:
        raise AssertionError("must not start")

    flow.edge(slow, after)
    async with asyncio.timeout(5):
        result = await flow.run({}, on=house)
    assert ends == ["stopped"]
    assert result.failed
    assert result.error is not None
    assert result.error.code == "node_timeout"
    (failed,) = await told(house, result, "node.failed")
    assert failed.node == "slow"
    assert failed.data["error"]["code"] == "node_timeout"


@pytest.mark.covers("G-26")
async def test_attempt_that_timed_out_is_tried_again_when_the_policy_allows(house: Holdfast) -> None:
    flow = Flow("second", effect="read")

    @flow.node(timeout="20ms", retry=Retry(2, delay=0))
    async def slow(ctx: Context) -> dict[str, Any]:
        if ctx.attempt == 1:
            await asyncio.sleep(30)
        return {"attempt": ctx.attempt}

    assert (await flow.run({}, on=house)).expect().state == {"attempt": 2}


@pytest.mark.covers("G-26", "D-15")
async def test_effect_that_timed_out_is_in_doubt_and_not_repeated(house: Holdfast) -> None:
    flow = Flow("pays")
    calls: list[int] = []

    @flow.node(effect="external", timeout="20ms", retry=Retry(3, delay=0))
    async def pay(ctx: Context) -> dict[str, Any]:
        calls.append(ctx.attempt)
        await asyncio.sleep(30)
        return {}

    result = await flow.run({}, on=house)
    assert result.status is RunStatus.pending_input
    assert [hold.type for hold in result.holds] == ["in_doubt"]
    assert calls == [1]


class Thread:
    """A sync handler that cannot be stopped: it goes on when it is told to."""

    def __init__(self) -> None:
        self.go, self.over = threading.Event(), threading.Event()
        self.raised: list[str] = []

    def work(self, ctx: Context) -> dict[str, Any]:
        self.go.wait(10)
        for use in (lambda: ctx.emit("late"), lambda: ctx.artifact("late", 1), lambda: ctx.spent(tokens=1)):
            try:
                use()
            except RuntimeError as error:
                self.raised.append(str(error))
        self.over.set()
        return {"late": True}


@pytest.mark.covers("D-16", "CORE-FLOW-27")
async def test_thread_that_timed_out_changes_nothing_and_its_context_raises(house: Holdfast) -> None:
    thread = Thread()
    flow = Flow("thread", effect="pure")
    flow.node(id="slow", timeout="20ms", on_failure="skip")(thread.work)

    @flow.node
    async def after() -> dict[str, Any]:
        thread.go.set()
        assert await asyncio.to_thread(thread.over.wait, 10)
        await asyncio.sleep(0.01)
        return {"after": True}

    flow.edge("slow", after)
    result = await flow.run({}, on=house)
    assert result.expect().state == {"after": True}
    assert result.artifacts == {}
    assert len(thread.raised) == 3
    assert all("its timeout passed" in text for text in thread.raised)
    assert "node.emitted" not in [event.type for event in await told(house, result)]


@pytest.mark.covers("D-16", "D-15")
async def test_effect_in_a_thread_is_in_doubt_when_its_time_is_over(house: Holdfast) -> None:
    thread = Thread()
    flow = Flow("thread_effect")
    flow.node(id="pays", effect="external", timeout="20ms")(thread.work)
    result = await flow.run({}, on=house)
    thread.go.set()
    assert await asyncio.to_thread(thread.over.wait, 10)
    assert result.status is RunStatus.pending_input
    assert [hold.type for hold in result.holds] == ["in_doubt"]
    again = await flow.resume(result.run_id, on=house)
    assert again.status is RunStatus.pending_input, "the late result is dropped"
    assert "late" not in again.state
