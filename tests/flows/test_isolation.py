"""Runs whose worker died continue at once. Suspects, whose next worker died too, run alone until they make
progress."""

from __future__ import annotations

import asyncio

import pytest

from holdfast import Flow, Holdfast, Limits, Worker
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.worker import isolation as suspects
from holdfast.store.rows import ClaimRequest
from holdfast.testing.clock import FakeClock
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG

pytestmark = [pytest.mark.anyio, pytest.mark.covers("SAFE-FLEET-01")]
SECOND = 1_000_000


class Steps:
    """A flow of two nodes; a test lets each of them end, and sees what is under way."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.under_way: set[str] = set()
        self.together: list[set[str]] = []
        self.doors: dict[str, asyncio.Event] = {}
        self.flow = Flow("steps", effect="pure")
        first, second = self.flow.node(id="first")(self._first), self.flow.node(id="second")(self._second)
        self.flow.edge(first, second)

    def door(self, name: str) -> asyncio.Event:
        return self.doors.setdefault(name, asyncio.Event())

    async def _first(self, s: dict) -> dict:
        return await self._pass(s["name"] + ".first")

    async def _second(self, s: dict) -> dict:
        return await self._pass(s["name"] + ".second")

    async def _pass(self, name: str) -> dict:
        self.under_way.add(name)
        self.together.append(set(self.under_way))
        try:
            await self.door(name).wait()
        finally:
            self.under_way.discard(name)
        return {}

    async def until(self, names: set[str]) -> None:
        async with asyncio.timeout(HANG):
            while self.under_way != names:
                await self.tick()

    async def tick(self) -> None:
        """Less than a lease in all: nothing here takes so long."""
        self.clock.advance(milliseconds=10)
        await asyncio.sleep(0.005)


async def put(hf: Holdfast, steps: Steps, *names: str) -> list[RunId]:
    service = await hf.service()
    return [(await service.create(steps.flow.program(), {"name": name}))[0].id for name in names]


async def died(hf: Holdfast, clock: FakeClock, count: int, *, times: int = 2) -> None:
    """Workers, one after the other, claimed all that is ready, and were not heard of again."""
    store = await hf.open()
    for nth in range(times):
        assert len(await store.claim(ClaimRequest(worker=f"dead-{nth}", ttl=SECOND, limit=count))) == count
        clock.advance(seconds=2)
        assert len(await store.reclaim(limit=count, max_recoveries=9)) == count


async def became_suspect(hf: Holdfast, clock: FakeClock, run: RunId) -> None:
    store = await hf.open()
    for nth in range(2):
        await store.claim(ClaimRequest(worker=f"dead-{nth}", ttl=1, run=run))
        clock.advance(milliseconds=1)
        await store.reclaim(limit=1, max_recoveries=9)
    assert (await (await hf.service()).get(run)).suspect


async def status(hf: Holdfast, run: RunId) -> RunStatus:
    return (await (await hf.service()).get(run)).status


async def test_runs_of_a_dead_worker_continue_at_once_and_beside_each_other_and_others() -> None:
    steps = Steps(clock := FakeClock())
    async with Holdfast("memory:", clock=clock) as hf:
        await put(hf, steps, "a", "b", "c")
        await died(hf, clock, 3, times=1)
        await put(hf, steps, "new")
        async with Worker(steps.flow, on=hf, poll=0.01, grace=0.0, concurrency=10):
            await steps.until({"a.first", "b.first", "c.first", "new.first"})


async def test_suspects_run_one_after_the_other_and_alone_until_each_made_progress() -> None:
    steps = Steps(clock := FakeClock())
    async with Holdfast("memory:", clock=clock) as hf:
        await put(hf, steps, "a", "b", "c")
        await died(hf, clock, 3)
        await put(hf, steps, "new")
        async with Worker(steps.flow, on=hf, poll=0.01, grace=0.0, concurrency=10):
            await steps.until({"a.first"})
            steps.door("a.first").set()
            await steps.until({"a.second", "new.first"})
            # The next suspect starts when nothing else is under way.
            for name in ("a.second", "new.first", "new.second"):
                steps.door(name).set()
            await steps.until({"b.first"})
            steps.door("b.first").set()
            await steps.until({"b.second"})
            steps.door("b.second").set()
            await steps.until({"c.first"})
    assert [names for names in steps.together if names & {"a.first", "b.first", "c.first"}] == [
        {"a.first"},
        {"b.first"},
        {"c.first"},
    ]


async def test_worker_claims_others_beside_a_suspect_that_is_alone_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suspects, "LEASES_ALONE", 0)
    steps = Steps(clock := FakeClock())
    async with Holdfast("memory:", clock=clock) as hf:
        (run,) = await put(hf, steps, "slow")
        await died(hf, clock, 1)
        await put(hf, steps, "new")
        async with Worker(steps.flow, on=hf, poll=0.01, grace=0.0):
            await steps.until({"slow.first", "new.first"})
            row = await (await hf.service()).get(run)
            assert (row.suspect, row.recoveries) == (False, 2)


async def test_busy_worker_makes_room_for_a_suspect_that_has_waited_for_long() -> None:
    steps = Steps(clock := FakeClock())
    async with (
        Holdfast("memory:", clock=clock) as hf,
        Worker(steps.flow, on=hf, poll=0.01, grace=0.0) as worker,
    ):
        worker._worker.isolation._patience = 0.0
        await put(hf, steps, "busy")
        await steps.until({"busy.first"})
        (run,) = await put(hf, steps, "suspect")
        await became_suspect(hf, clock, run)
        worker._worker.isolation.look_soon()
        (late,) = await put(hf, steps, "late")
        worker._worker.wake()
        steps.door("busy.first").set()
        await steps.until({"busy.second"})
        assert await status(hf, late) is RunStatus.pending
        steps.door("busy.second").set()
        await steps.until({"suspect.first"})
        assert await status(hf, late) is RunStatus.pending
        steps.door("suspect.first").set()
        await steps.until({"suspect.second", "late.first"})


async def test_worker_claims_as_usual_while_a_suspect_has_not_waited_for_long() -> None:
    steps = Steps(clock := FakeClock())
    async with (
        Holdfast("memory:", clock=clock) as hf,
        Worker(steps.flow, on=hf, poll=0.01, grace=0.0),
    ):
        await put(hf, steps, "busy")
        await steps.until({"busy.first"})
        (run,) = await put(hf, steps, "suspect")
        await became_suspect(hf, clock, run)
        await put(hf, steps, "late")
        await steps.until({"busy.first", "late.first"})


async def test_run_that_waits_for_a_person_in_memory_is_parked_for_a_suspect() -> None:
    steps = Steps(clock := FakeClock())
    asking = Flow("asking", effect="pure")
    asking.hold("approve", prompt="Go on?", options=["yes", "no"])
    async with (
        Holdfast("memory:", clock=clock) as hf,
        Worker(steps.flow, asking, on=hf, poll=0.01, grace=0.0, hot_hold=600.0) as worker,
    ):
        service = await hf.service()
        row, _ = await service.create(asking.program(), {})
        async with asyncio.timeout(HANG):
            while worker._worker.slots.hot != 1:
                await steps.tick()
        (run,) = await put(hf, steps, "suspect")
        await became_suspect(hf, clock, run)
        await steps.until({"suspect.first"})
        assert worker._worker.claimed == {run}
        assert (await service.get(row.id)).worker is None


@pytest.mark.parametrize("limits", [None, Limits(concurrency=5)])
async def test_suspects_are_claimed_beside_others_when_no_worker_becomes_free_for_them(
    limits: Limits | None,
) -> None:
    """A handler of hours: one suspect at each look."""
    steps = Steps(clock := FakeClock())
    steps.flow = Flow("steps", effect="pure", limits=limits)
    steps.flow.node(id="first")(steps._first)
    async with (
        Holdfast("memory:", clock=clock, settings=RunSettings(lease_ttl=6.0)) as hf,
        Worker(steps.flow, on=hf, poll=0.01, grace=0.0),
    ):
        await put(hf, steps, "busy")
        await steps.until({"busy.first"})
        for name in ("a", "b"):
            await became_suspect(hf, clock, (await put(hf, steps, name))[0])
        found: list[set[str]] = []
        async with asyncio.timeout(HANG):
            while len(steps.under_way) < 3:
                clock.advance(seconds=1)
                await asyncio.sleep(0.02)
                if not found or found[-1] != steps.under_way:
                    found.append(set(steps.under_way))
        assert [len(names) for names in found] == [1, 2, 3]
