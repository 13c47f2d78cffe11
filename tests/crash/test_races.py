"""Narrow moments that the tests with many processes found, each made wide here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast
from holdfast.runs.driver.driver import Driver
from holdfast.runs.worker.worker import RunWorker
from holdfast.store.memory import MemoryStore
from holdfast.store.rows import ClaimRequest
from holdfast.testing.clock import FakeClock
from holdfast.types.status import RunStatus

pytestmark = pytest.mark.anyio


@pytest.mark.covers("D-29")
async def test_script_goes_on_when_the_answer_comes_before_the_run_could_park() -> None:
    flow = Flow("quick", effect="read")

    @flow.script
    async def talk(s: dict[str, Any], ctx: Context) -> dict[str, Any]:
        said = await ctx.ask("Well?", options=["yes", "no"])
        await ctx.step("act", lambda: None)
        return {"said": said.decision}

    async with Holdfast("memory:") as hf:
        hf.register(flow.program())
        service = await hf.service()
        row, _ = await service.create(flow.program(), {})

        def answer_at_once() -> None:
            """In the very commit that shows the question: nothing of the memory store ever waits."""
            with pytest.raises(StopIteration):
                _answer().send(None)

        async def _answer() -> None:
            for hold in await service.holds(row.id):
                await service.answer(hold.id, "yes")

        service.runtime.listen(row.id, answer_at_once)
        result = await flow.resume(row.id, on=hf)
    assert result.expect().state["said"] == "yes"


@pytest.mark.covers("D-7")
async def test_caller_is_not_cancelled_when_the_heartbeat_speaks_after_the_run_has_ended() -> None:
    flow = Flow("over", effect="pure")
    drivers: list[Driver] = []

    async with Holdfast("memory:") as hf:
        service = await hf.service()

        @flow.node
        async def only(_s: dict[str, Any]) -> dict[str, Any]:
            drivers.extend(service.runtime.drivers.values())
            return {"x": 1}

        result = await flow.run({}, on=hf)
        (driver,) = drivers
        asyncio.get_running_loop().call_soon(driver.lease_gone)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert result.completed
    assert not driver.session.lost


@pytest.mark.covers("D-7")
async def test_worker_takes_a_run_again_when_it_lost_it_a_moment_ago() -> None:
    """The task of the first claim is not gone yet when the second one begins."""
    flow = Flow("again", effect="pure")
    clock = FakeClock()
    first, released = asyncio.Event(), asyncio.Event()

    @flow.node(effect="write")
    async def slow(_s: dict[str, Any]) -> dict[str, Any]:
        first.set()
        await released.wait()
        return {"x": 1}

    async with Holdfast(MemoryStore(clock), clock=clock) as hf:
        hf.register(flow.program())
        service = await hf.service()
        row, _ = await service.create(flow.program(), {})
        worker = RunWorker(service, hot_hold=0.0)
        lost = await _claimed(worker)
        await first.wait()
        driver = service.runtime.drivers[row.id]
        clock.advance(minutes=1)
        # Another worker took it and released it: after a reclaim it would be claimed alone.
        want = ClaimRequest(worker="other", ttl=1_000_000, run=row.id)
        (taken,) = await service.store.claim(want)
        released_at = {"status": RunStatus.resumable, "inbox_seen": 0, "ready_at": clock.now()}
        assert await service.store.park(taken.lease, **released_at)
        again = await _claimed(worker)
        driver.lost()
        released.set()
        await asyncio.gather(lost, again)
        assert not worker._runs
        assert [hold.type for hold in await service.holds(row.id)] == ["in_doubt"]


async def _claimed(worker: RunWorker) -> asyncio.Task[None]:
    assert await worker._claim() == 1
    (task,) = worker._runs.values()
    await asyncio.sleep(0)
    return task
