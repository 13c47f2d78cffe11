"""A run that is kept in memory and only waits for a person shows it (D-31)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, RunSettings, RunStatus
from holdfast.runs.worker.reaper import Reaper
from holdfast.store.rows import RunRow
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.flows.conftest import node
from tests.flows.places import HOT, RUN, Place, answer

pytestmark = [pytest.mark.anyio, pytest.mark.covers("D-31")]

WARM = RunSettings(hot_timer=0.0, hot_hold=3600.0, lease_ttl=30.0, poll=0.02, grace=0.5)


async def row_of(hf: Holdfast) -> RunRow:
    row = await (await hf.open()).get_run(RunId(RUN))
    assert row is not None
    return row


async def until(hf: Holdfast, status: RunStatus) -> RunRow:
    async with asyncio.timeout(HANG):
        while True:
            store = await hf.open()
            row = await store.get_run(RunId(RUN))
            if row is not None and row.status is status:
                return row
            await asyncio.sleep(0.002)


@asynccontextmanager
async def driven(flow: Flow, hf: Holdfast) -> AsyncIterator[asyncio.Task[Any]]:
    task = asyncio.create_task(flow.run({}, on=hf, run_id=RUN))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def asking(kind: str, may_end: asyncio.Event) -> Flow:
    flow = Flow("asks", effect="pure")
    if kind == "hold":
        flow.hold("ask", prompt="Go?", options=["yes"])
    else:

        @flow.script
        async def ask(ctx: Context) -> None:
            await ctx.ask("Go?", options=["yes"])

    @flow.node
    async def after() -> None:
        await may_end.wait()

    flow.edge("ask", after)
    return flow


@pytest.mark.parametrize("kind", ["hold", "script"])
async def test_run_shows_that_it_waits_for_a_person_and_that_it_goes_on(place: Place, kind: str) -> None:
    may_end = asyncio.Event()
    flow, hf = asking(kind, may_end), await place.hf(WARM)
    async with driven(flow, hf) as task:
        row = await until(hf, RunStatus.pending_input)
        assert row.worker is not None
        await answer(hf, RUN, "yes")
        row = await until(hf, RunStatus.running)
        assert row.worker is not None
        may_end.set()
        assert (await task).completed


async def test_run_is_running_while_another_branch_works(place: Place) -> None:
    flow, began, may_end = Flow("branches", effect="pure"), asyncio.Event(), asyncio.Event()
    node(flow, "a")
    flow.hold("ask", prompt="Go?", options=["yes"])

    @flow.node
    async def side() -> None:
        began.set()
        await may_end.wait()

    flow.edge("a", "ask")
    flow.edge("a", side)
    hf = await place.hf(WARM)
    async with driven(flow, hf) as task:
        await began.wait()
        async with asyncio.timeout(HANG):
            while not await (await hf.service()).holds(RunId(RUN)):  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        assert (await row_of(hf)).status is RunStatus.running
        may_end.set()
        await until(hf, RunStatus.pending_input)
        await answer(hf, RUN, "yes")
        assert (await task).completed


async def test_run_is_running_while_a_time_is_near_that_goes_on_by_itself(place: Place) -> None:
    flow = Flow("times", effect="pure")
    node(flow, "a")
    flow.hold("ask", prompt="Go?", options=["yes"])
    flow.timer("nap", "5m")
    flow.edge("a", "ask")
    flow.edge("a", "nap")
    hf = await place.hf(HOT)
    async with driven(flow, hf) as task:
        while not place.clock.sleeping:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        assert (await row_of(hf)).status is RunStatus.running
        place.clock.advance(minutes=6)
        await until(hf, RunStatus.pending_input)
        await answer(hf, RUN, "yes")
        assert (await task).completed


async def test_waiting_run_keeps_its_status_when_its_worker_dies_and_counts_no_recovery(
    place: Place,
) -> None:
    may_end = asyncio.Event()
    may_end.set()
    flow, hf = asking("hold", may_end), await place.hf(WARM)
    async with driven(flow, hf) as task:
        await until(hf, RunStatus.pending_input)
        driver = (await hf.service()).runtime.drivers[RunId(RUN)]
        driver.parking.release = _nothing  # it dies: nobody gives the run back
        place.lapse()
        store = await hf.open()
        (row,) = await Reaper(store, place.clock, max_recoveries=0).sweep()
        assert (row.status, row.worker, row.recoveries) == (RunStatus.pending_input, None, 0)
        task.cancel()
    other = await place.hf()
    await answer(other, RUN, "yes")
    assert (await flow.resume(RUN, on=other)).completed


async def _nothing() -> None:
    return


async def test_waiting_run_is_given_back_as_what_it_is_when_its_driver_is_stopped(place: Place) -> None:
    may_end = asyncio.Event()
    may_end.set()
    flow, hf = asking("hold", may_end), await place.hf(WARM)
    async with driven(flow, hf) as task:
        await until(hf, RunStatus.pending_input)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        row = await row_of(hf)
        assert (row.status, row.worker) == (RunStatus.pending_input, None)
        assert row.ready_at is not None
    await answer(hf, RUN, "yes")
    assert (await flow.resume(RUN, on=hf)).completed


async def test_waiting_run_is_cancelled_while_it_is_in_memory(place: Place) -> None:
    flow, hf = asking("hold", asyncio.Event()), await place.hf(WARM)
    async with driven(flow, hf) as task:
        await until(hf, RunStatus.pending_input)
        await (await hf.service()).cancel(RUN)
        assert (await task).status is RunStatus.cancelled
