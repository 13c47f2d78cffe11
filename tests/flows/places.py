"""A store that outlives the instances on it: for tests in which one worker goes and another comes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from holdfast import Event, Flow, Holdfast, Result, RunSettings, Worker
from holdfast.runs.encryption.detect import encrypted_store_within
from holdfast.runs.service import RunService
from holdfast.store.open import open_store
from holdfast.store.protocols import Store
from holdfast.testing.clock import FakeClock
from holdfast.testing.crashpoints import Crash, armed
from holdfast.types.hold import HoldRow
from holdfast.types.ids import RunId

# Nothing is kept in memory while it waits: every wait goes through the store.
COLD = RunSettings(hot_timer=0.0, hot_hold=0.0, lease_ttl=30.0, poll=0.02, grace=0.5)
HOT = RunSettings(hot_timer=3600.0, hot_hold=3600.0, lease_ttl=3600.0 * 24 * 365, poll=0.02, grace=0.5)


class Place:
    def __init__(self, address: str) -> None:
        self.address = address
        self.clock = FakeClock()
        self._shared: Store | None = None
        self._instances: list[Holdfast] = []

    async def hf(self, settings: RunSettings = COLD, **options: Any) -> Holdfast:
        """One more process, as it were, on the same store and clock."""
        found = Holdfast(await self._store(), clock=self.clock, settings=settings, **options)
        self._instances.append(found)
        return found

    async def _store(self) -> str | Store:
        if not self.address.startswith("memory:"):
            return self.address
        if self._shared is None:
            self._shared = await open_store(self.address, clock=self.clock)
        return self._shared

    async def reader(self, run: RunId) -> Holdfast:
        """An instance that carries the flow of this run, to read its journal with."""
        for hf in self._instances:
            row = await (await hf.open()).get_run(run)
            if row is not None and row.version in hf.programs:
                return hf
        raise AssertionError(f"no instance carries the flow of run {run}")

    def lapse(self) -> None:
        """Time enough for the lease of a dead worker to run out."""
        self.clock.advance(seconds=31)

    async def close(self) -> None:
        for hf in self._instances:
            await hf.close()
        if self._shared is not None:
            await self._shared.close()

    async def crash(self, flow: Flow, given: Any, point: str = "after_intent", *, nth: int = 1) -> str:
        """Run until the worker dies at that point; its lease has lapsed when this returns. The run's id."""
        hf = await self.hf()
        with armed(point, nth=nth) as reached, suppress(Crash):
            await flow.run(given, on=hf, run_id=RUN)
        assert reached.reached, f"{point} was never reached"
        self.lapse()
        return RUN

    async def die_at(
        self, point: str, nth: int, work: Callable[[], Awaitable[Any]], *, may_miss: bool = False
    ) -> None:
        """Do that until the worker dies at that point."""
        with armed(point, nth=nth) as reached, suppress(Crash):
            await work()
        assert reached.reached or may_miss, f"{point} was never reached"

    async def finish(self, *flows: Flow) -> Holdfast:
        """Workers that come after it do what is left."""
        for _ in range(4):
            self.clock.advance(minutes=2)
            later = await self.hf()
            await Worker(*flows, on=later).run_until_idle()
        return later


RUN = "11111111-2222-4333-8444-555555555555"


@asynccontextmanager
async def a_place(address: str) -> AsyncIterator[Place]:
    place = Place(address)
    try:
        yield place
    finally:
        await place.close()


async def told(hf: Holdfast, result: Result | str, *types: str) -> list[Event]:
    """The run's events, all or of these types."""
    service = await hf.service()
    run = result if isinstance(result, str) else result.run_id
    return [event for event in await service.events(run) if not types or event.type in types]


async def kinds(hf: Holdfast, result: Result | str) -> list[str]:
    return [event.type for event in await told(hf, result)]


def as_it_lies(store: Store) -> Store:
    """The store without what decrypts it: these tests run with HOLDFAST_KEYS too."""
    encrypted = encrypted_store_within(store)
    return store if encrypted is None else encrypted.inner


async def open_holds(hf: Holdfast, result: Result | str) -> list[HoldRow]:
    service = await hf.service()
    row = await service.get(result if isinstance(result, str) else result.run_id)
    return await service.holds(row.id)


async def answer(hf: Holdfast, result: Result | str, decision: str, **more: Any) -> HoldRow:
    """Answer the only open hold of a run."""
    service: RunService = await hf.service()
    (hold,) = await open_holds(hf, result)
    return await service.answer(hold.id, decision, **more)
