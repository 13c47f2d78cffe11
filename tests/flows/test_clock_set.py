"""The wall clock is set while a run waits: nobody waits longer than was declared."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Flow, Holdfast, Result, Retry
from holdfast.types.clock import to_datetime
from tests.deadlines import HANG
from tests.flows.places import HOT, Place

pytestmark = pytest.mark.anyio

BACK = timedelta(hours=-1)


def fails_once() -> Flow:
    flow = Flow("wobbly")
    calls: list[int] = []

    @flow.node(effect="read", retry=Retry(3, delay="5s", backoff="fixed"))
    async def work() -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            raise OSError("busy")
        return {"done": True}

    return flow


def sleeps(length: str | None = "5s", *, until: str | None = None) -> Flow:
    flow = Flow("nap", effect="pure")
    flow.timer("sleep", length, until=until)
    return flow


async def _until_asleep(place: Place, task: asyncio.Task[Any]) -> None:
    async with asyncio.timeout(HANG):
        while not place.clock.sleeping and not task.done():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def _ran(place: Place, hf: Holdfast, flow: Flow) -> Result:
    """Run the flow; while it waits the clock is set back an hour, and then five seconds pass."""
    running = asyncio.create_task(flow.run(on=hf))
    await _until_asleep(place, running)
    place.clock.set_by(BACK)
    place.clock.advance(seconds=5)
    return await asyncio.wait_for(running, HANG)


@pytest.mark.covers("D-5", "D-33")
@pytest.mark.parametrize("make", [fails_once, sleeps])
async def test_a_wait_is_as_long_as_declared_when_the_clock_is_set_back(place: Place, make: Any) -> None:
    hf = await place.hf(HOT)
    result = await _ran(place, hf, make())
    assert result.completed
    assert not await (await hf.open()).fire_timers(limit=10), "the stored timer is closed with the wait"


@pytest.mark.covers("D-5")
async def test_a_wait_goes_on_when_the_clock_is_set_back_and_its_time_has_not_passed(place: Place) -> None:
    hf = await place.hf(HOT)
    running = asyncio.create_task(sleeps("9s").run(on=hf))
    await _until_asleep(place, running)
    place.clock.set_by(BACK)
    place.clock.advance(seconds=8)
    await asyncio.sleep(0.05)
    assert not running.done()
    place.clock.advance(seconds=1)
    assert (await asyncio.wait_for(running, HANG)).completed


@pytest.mark.covers("D-5")
async def test_a_wait_until_a_moment_goes_by_the_wall_clock_when_that_is_set_back(place: Place) -> None:
    hf = await place.hf(HOT)
    moment = to_datetime(place.clock.now() + 5_000_000)
    running = asyncio.create_task(sleeps(None, until="at").run({"at": moment}, on=hf))
    await _until_asleep(place, running)
    place.clock.set_by(BACK)
    place.clock.advance(seconds=5)
    await asyncio.sleep(0.05)
    assert not running.done()
    place.clock.advance(hours=1)
    assert (await asyncio.wait_for(running, HANG)).completed
