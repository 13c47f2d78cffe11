"""`ctx.sleep`: a wait amid a handler that needs no process, ends once, and is not slept twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Context, Flow, Retry, RunStatus
from holdfast.errors import InputError, ScriptError
from tests.flows.places import HOT, Place, answer
from tests.flows.test_two_folds import assert_alike

pytestmark = pytest.mark.anyio


def dozing(log: list[str], seconds: Any = 3600) -> Flow:
    flow = Flow("dozing", effect="read")

    @flow.script
    async def doze(ctx: Context) -> dict[str, Any]:
        log.append("in")
        await ctx.step("first", lambda: log.append("step"), effect="read")
        await ctx.sleep(seconds)
        log.append("between")
        await ctx.sleep(seconds)
        return {"done": True}

    return flow


async def test_a_sleep_parks_the_run_and_goes_on_behind_it_when_its_time_has_come(place: Place) -> None:
    log: list[str] = []
    flow = dozing(log)
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    for early in range(2):
        place.clock.advance(minutes=20)
        result = await flow.resume(result.run_id, on=await place.hf())
        assert (result.status, early) == (RunStatus.waiting, early)
    place.clock.advance(minutes=20)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.waiting
    assert log.count("between") == 1
    place.clock.advance(hours=1)
    hf = await place.hf()
    result = await flow.resume(result.run_id, on=hf)
    assert result.completed
    assert log.count("step") == 1
    await assert_alike(hf, result.run_id)


async def test_a_short_sleep_stays_in_memory(place: Place) -> None:
    log: list[str] = []
    flow = dozing(log, 0.02)
    running = asyncio.create_task(flow.run(on=await place.hf(HOT)))
    while not running.done():
        place.clock.advance(seconds=0.01)
        await asyncio.sleep(0.001)
    assert (await running).completed
    assert log.count("in") == 1


async def test_sleeps_run_beside_each_other_and_beside_a_question(place: Place) -> None:
    flow = Flow("beside", effect="read")

    @flow.script
    async def wait(ctx: Context) -> dict[str, Any]:
        reply, *_ = await asyncio.gather(
            ctx.ask("Go?", options=["yes"]), ctx.sleep(60, key="short"), ctx.sleep(600, key="long")
        )
        return {"said": reply.decision}

    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    place.clock.advance(seconds=100)
    result = await flow.resume(result.run_id, on=await place.hf())
    await answer(hf, result, "yes")
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(seconds=600)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.expect().state["said"] == "yes"


async def test_a_sleep_that_nobody_waits_for_any_more_leaves_nothing_behind(place: Place) -> None:
    flow = Flow("left", effect="read")

    @flow.script
    async def leave(ctx: Context) -> dict[str, Any]:
        sleeping = asyncio.create_task(ctx.sleep(3600))
        await asyncio.sleep(0)
        await ctx.step("work", lambda: None, effect="read")
        sleeping.cancel()
        return {"left": True}

    flow.timer("later", "1d")
    flow.edge("leave", "later")
    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(hours=2)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(days=1)
    assert (await flow.resume(result.run_id, on=await place.hf())).completed


def failing_beside_a_sleep(sleeps: dict[int, float]) -> Flow:
    """Its first attempt fails beside a sleep; `sleeps`: by attempt, how long."""
    flow = Flow("again", effect="read")

    @flow.script(retry=Retry(2, delay="1s"))
    async def work(ctx: Context) -> dict[str, Any]:
        seconds = sleeps.get(ctx.attempt)
        sleeping = None if seconds is None else asyncio.create_task(ctx.sleep(seconds, key="nap"))
        await ctx.step("first", lambda: None, effect="read")
        if ctx.attempt == 1:
            raise ValueError("broken")
        if sleeping is not None:
            await sleeping
        return {"attempt": ctx.attempt}

    flow.timer("later", "1d")
    flow.edge("work", "later")
    return flow


@pytest.mark.parametrize("second", [60, 3600, 86400])
async def test_a_sleep_ends_when_its_first_attempt_said(place: Place, second: float) -> None:
    """A wake time is computed once and stored (D-5), whatever the next attempt asks for."""
    flow, hf = failing_beside_a_sleep({1: 3600, 2: second}), await place.hf()
    result = await flow.run(on=hf)
    store = await hf.open()
    started = place.clock.now()
    for minutes, attempts in ((1, 2), (58, 2)):
        place.clock.advance(minutes=minutes)
        result = await flow.resume(result.run_id, on=await place.hf())
        assert (result.status, attempts) == (RunStatus.waiting, 2)
        assert "attempt" not in result.state
        assert (await store.next_timer() or 0) - started <= 3601 * 1_000_000
    place.clock.advance(minutes=2)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.state["attempt"] == 2
    place.clock.advance(days=1)
    assert (await flow.resume(result.run_id, on=await place.hf())).completed
    await assert_alike(hf, result.run_id)


@pytest.mark.parametrize("pauses", [0, 20], ids=["before_its_commit", "after_its_commit"])
async def test_a_wait_that_an_attempt_left_behind_is_no_wait_of_the_next_one(
    place: Place, pauses: int
) -> None:
    flow = Flow("again", effect="read")

    @flow.script(retry=Retry(2, delay="10ms"))
    async def work(ctx: Context) -> dict[str, Any]:
        sleeping = asyncio.create_task(ctx.sleep(1, key="nap"))
        await ctx.step("first", lambda: None, effect="read")
        if ctx.attempt == 1:
            for _ in range(pauses):
                await asyncio.sleep(0.001)
            raise ValueError("broken")
        await sleeping
        return {"attempt": ctx.attempt}

    running = asyncio.create_task(flow.run(on=await place.hf(HOT)))
    while not running.done():
        place.clock.advance(seconds=0.005)
        await asyncio.sleep(0.001)
    assert (await running).expect().state["attempt"] == 2


async def test_a_sleep_that_the_next_attempt_does_not_come_to_leaves_no_timer(place: Place) -> None:
    flow, hf = failing_beside_a_sleep({1: 3600}), await place.hf()
    result = await flow.run(on=hf)
    place.clock.advance(minutes=1)
    result = await flow.resume(result.run_id, on=await place.hf())
    assert result.error is not None
    assert "does not repeat what it did before" in result.error.message
    assert await (await hf.open()).next_timer() is None


async def test_a_fork_amid_a_sleep_sleeps_for_itself(place: Place) -> None:
    log: list[str] = []
    flow = dozing(log)
    hf = await place.hf()
    result = await flow.run(on=hf)
    service = await hf.service()
    row = await service.fork(result.run_id, (await service.get(result.run_id)).head)
    forked = await flow.resume(row.id, on=await place.hf())
    assert forked.status is RunStatus.waiting
    for _ in range(2):
        place.clock.advance(hours=1)
        forked = await flow.resume(row.id, on=await place.hf())
    assert forked.completed


@pytest.mark.parametrize("hour", ["1h", "PT60M", "3600", timedelta(hours=1)])
async def test_a_sleep_takes_what_other_times_of_a_flow_take(place: Place, hour: Any) -> None:
    flow = dozing([], hour)
    result = await flow.run(on=await place.hf())
    place.clock.advance(minutes=59)
    assert (await flow.resume(result.run_id, on=await place.hf())).state is not None
    assert result.status is RunStatus.waiting
    for _ in range(2):
        place.clock.advance(hours=1)
        result = await flow.resume(result.run_id, on=await place.hf())
    assert result.completed


@pytest.mark.parametrize("seconds", [-1, "-1s", float("nan"), float("inf"), "1bh", "soon", None, True, []])
async def test_what_is_no_length_of_time_is_refused(place: Place, seconds: Any) -> None:
    flow = dozing([], seconds)
    result = await flow.run(on=await place.hf())
    assert result.error is not None
    assert (result.error.code, "ctx.sleep" in result.error.message) == (InputError.code, True)


async def test_a_plain_node_is_asked_to_become_a_script(place: Place) -> None:
    flow = Flow("plain", effect="external")

    @flow.node
    async def doze(ctx: Context) -> None:
        await ctx.sleep(1)

    result = await flow.run(on=await place.hf())
    assert result.error is not None
    assert (result.error.code, "ctx.sleep" in result.error.message) == (ScriptError.code, True)


async def test_a_sleep_does_not_count_against_the_node_s_timeout(place: Place) -> None:
    flow = Flow("patient", effect="read")

    @flow.script(timeout="5s")
    async def doze(ctx: Context) -> dict[str, Any]:
        await ctx.sleep(3600)
        return {"done": True}

    result = await flow.run(on=await place.hf())
    place.clock.advance(hours=1)
    assert (await flow.resume(result.run_id, on=await place.hf())).completed


async def test_a_sync_script_sleeps_as_well(place: Place) -> None:
    flow = Flow("thread", effect="read")

    @flow.script
    def doze(ctx: Context) -> dict[str, Any]:
        ctx.sleep(60)  # pyright: ignore[reportUnusedCoroutine]
        return {"done": True}

    result = await flow.run(on=await place.hf())
    assert result.status is RunStatus.waiting
    place.clock.advance(minutes=1)
    assert (await flow.resume(result.run_id, on=await place.hf())).completed


@pytest.mark.covers("D-30", "SAFE-PROOF-01")
async def test_no_timer_is_left_when_a_handler_returns_without_waiting_for_its_sleep(place: Place) -> None:
    flow = Flow("hasty", effect="read")

    @flow.script
    async def hasty(ctx: Context) -> None:
        sleep = asyncio.create_task(ctx.sleep(3600))
        # Until the timer is set: a step that was recorded after it shows that.
        await ctx.step("beside it", lambda: None, effect="read")
        sleep.cancel()

    flow.hold("ask", prompt="Continue?", options=["yes"])
    flow.edge(hasty, "ask")
    hf = await place.hf()
    result = await flow.run(on=hf)
    assert result.status is RunStatus.pending_input
    assert await (await hf.service()).store.next_timer() is None
