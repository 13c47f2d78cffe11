"""Runs that wait use no slot of their worker: others start beside them at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast import Flow, Holdfast, Retry, RunSettings, Worker
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.flows.test_worker import put, status

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-FLEET-02")]
SLOTS = 2
WAITING = 5
DEFAULT = {"on_timeout": "default", "default_option": "yes"}


def timer(seconds: float) -> Flow:
    flow = Flow("timer", effect="pure")
    flow.timer("rest", f"{seconds}s")
    flow.edge("rest", flow.node(id="after")(_nothing))
    return flow


def deadline(seconds: float) -> Flow:
    """Waits until a moment that its state names."""
    flow = Flow("deadline", effect="pure")
    flow.timer("rest", until=f"{seconds}")
    flow.edge("rest", flow.node(id="after")(_nothing))
    return flow


def back_off(seconds: float) -> Flow:
    flow, tried = Flow("back_off", effect="read"), set[str]()

    @flow.node(retry=Retry(3, delay=f"{seconds}s", backoff="fixed", cap=None))
    async def flaky(s: dict, ctx: object) -> dict:
        if s["name"] not in tried:
            tried.add(s["name"])
            raise ConnectionError("not yet")
        return {}

    return flow


def sleep_inside(seconds: float) -> Flow:
    flow = Flow("sleep_inside", effect="read")

    @flow.node
    async def poll(ctx) -> dict:
        await ctx.sleep(seconds)
        return {}

    return flow


def question(seconds: float) -> Flow:
    flow = Flow("question", effect="pure")
    flow.hold("approve", prompt="Go on?", options=["yes"], timeout=f"{seconds}s", **DEFAULT)
    return flow


def question_inside(seconds: float) -> Flow:
    flow = Flow("question_inside", effect="read")

    @flow.node
    async def asks(ctx) -> dict:
        await ctx.ask("Go on?", options=["yes"], timeout=f"{seconds}s", **DEFAULT)
        return {}

    return flow


async def _nothing(s: dict) -> dict:
    return {}


WAITS: dict[str, Callable[[float], Flow]] = {
    "timer": timer,
    "deadline": deadline,
    "back-off": back_off,
    "ctx.sleep": sleep_inside,
    "hold": question,
    "ctx.ask": question_inside,
}


@pytest.mark.parametrize("seconds", [2, 25, 7200], ids="{}s".format)
@pytest.mark.parametrize("kind", WAITS)
async def test_urgent_run_starts_at_once_beside_more_waits_than_there_are_slots(
    kind: str, seconds: float
) -> None:
    waits, urgent = WAITS[kind](seconds), Flow("urgent", effect="pure")
    urgent.node(id="now")(_nothing)
    clock, settings = FakeClock(), RunSettings(lease_ttl=36_000.0)
    async with Holdfast("memory:", clock=clock, settings=settings) as hf:
        runs = [await put(hf, waits, str(n)) for n in range(WAITING)]
        async with Worker(waits, urgent, on=hf, concurrency=SLOTS, hot_hold=30.0, poll=0.01) as worker:
            # The clock stands still: nothing here may need that a wait ends.
            await _until(lambda: _all_wait(hf, runs))
            run = await put(hf, urgent)
            await _until(lambda: _ended(hf, [run]))
            await _until(lambda: _is_free(worker))
            async with asyncio.timeout(HANG):
                while not await _ended(hf, runs):
                    clock.advance(seconds=seconds / 4)
                    await asyncio.sleep(0.005)


async def _all_wait(hf: Holdfast, runs: list[RunId]) -> bool:
    """Each has begun and has no handler at work."""
    store = await hf.open()
    rows = [await store.get_run(run) for run in runs]
    waiting = (RunStatus.waiting, RunStatus.pending_input, RunStatus.running)
    return all(row is not None and row.status in waiting and row.head > 0 for row in rows)


async def _is_free(worker: Worker) -> bool:
    return worker._worker.slots.busy == 0


async def _few_in_memory(hf: Holdfast, runs: list[RunId]) -> bool:
    store = await hf.open()
    rows = [await store.get_run(run) for run in runs]
    return sum(row is not None and row.worker is not None for row in rows) <= SLOTS


async def _ended(hf: Holdfast, runs: list[RunId]) -> bool:
    return {await status(hf, run) for run in runs} == {RunStatus.completed}


async def _until(done: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG):
        while not await done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_no_more_runs_than_slots_are_at_work_when_waits_end_together() -> None:
    """A run that wakes up while all slots are in use is parked, and claimed when one is free."""
    at_work = most = 0
    flow = Flow("bursts", effect="pure")
    flow.timer("rest", "5s")
    door = asyncio.Event()

    async def work(s: dict) -> dict:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await door.wait()
        at_work -= 1
        return {}

    flow.edge("rest", flow.node(id="work")(work))
    clock, settings = FakeClock(), RunSettings(lease_ttl=36_000.0)
    async with Holdfast("memory:", clock=clock, settings=settings) as hf:
        runs = [await put(hf, flow, str(n)) for n in range(9)]
        async with Worker(flow, on=hf, concurrency=SLOTS, poll=0.01):
            await _until(lambda: _all_wait(hf, runs))
            # Those that could wake up while others are at work are parked first.
            await _until(lambda: _few_in_memory(hf, runs))
            async with asyncio.timeout(HANG):
                while at_work < SLOTS:
                    clock.advance(seconds=1)
                    await asyncio.sleep(0.005)
            clock.advance(seconds=60)
            await asyncio.sleep(0.05)
            door.set()
            async with asyncio.timeout(HANG):
                while not await _ended(hf, runs):
                    clock.advance(seconds=1)
                    await asyncio.sleep(0.005)
    assert most == SLOTS
