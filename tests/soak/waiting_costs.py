"""What one action costs in a store with so many waiting runs."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any

from holdfast import Flow, Holdfast
from holdfast.api.routes.run_list import page_of_runs
from holdfast.store.rows import Claim, ClaimRequest, RunFilter
from holdfast.types.hold import Due
from holdfast.types.status import RunStatus
from holdfast.types.terms import Actor
from tests.waiting_runs import PERSON, TENANT, Copy, Parked, refund

ADA = Actor(id=f"user:{PERSON}", tenant=TENANT)
Act = Callable[[], Awaitable[float]]


class WaitingRuns:
    """A store with `count` waiting runs, open. Each method does one thing and says how many seconds it took;
    what it needs before and after is not counted, and each run is used once."""

    def __init__(
        self, hf: Holdfast, parked: Parked, count: int, set_due: Callable[[int], Awaitable[None]]
    ) -> None:
        self._hf = hf
        self._parked = parked
        self._unused = random.Random(1).sample(range(1, count), min(count - 1, 5_000))
        self._set_due = set_due
        self._resumed_at = 0.0
        self._refund = refund(self._note)
        self._small = Flow[Any]("small", effect="pure")
        self._small.node(id="one")(_one)

    def _note(self) -> None:
        self._resumed_at = perf_counter()

    def _copy(self) -> Copy:
        return Copy(self._parked, self._unused.pop())

    @property
    def acts(self) -> dict[str, Act]:
        return {
            "claim": self.claim,
            "claim without a ready run": self.claim_nothing,
            "timer to resumed step": self.timer,
            "sweeps without anything due": self.sweep,
            "answer to resumed step": self.answer,
            "first inbox page": self.inbox,
            "runs list": self.runs,
            "runs list by status": self.runs_by_status,
        }

    async def claim(self) -> float:
        service = await self._hf.service()
        row, _ = await service.create(self._small.program(), {}, tenant=TENANT)
        claims, took = list[Claim](), 0.0
        # A process knows the server's time to some milliseconds only: the run may be ready a moment later.
        while not claims:
            began = perf_counter()
            claims = await service.store.claim(self._want())
            took = perf_counter() - began
        assert [claim.run.id for claim in claims] == [row.id]
        assert await service.store.delete_run(row.id)
        return took

    async def claim_nothing(self) -> float:
        store = (await self._hf.service()).store
        began = perf_counter()
        assert await store.claim(self._want()) == []
        return perf_counter() - began

    def _want(self) -> ClaimRequest:
        versions = tuple(flow.program().version for flow in (self._refund, self._small))
        # The lease is over at once, so that the run can be deleted.
        return ClaimRequest(worker="w", ttl=0, limit=10, lanes=("default",), versions=versions)

    async def timer(self) -> float:
        copy, store = self._copy(), (await self._hf.service()).store
        await self._set_due(copy.key)
        began = perf_counter()
        assert await store.fire_timers(limit=100) == 1
        await self._resumed(copy, RunStatus.pending_input)
        return self._resumed_at - began

    async def _resumed(self, copy: Copy, then: RunStatus) -> None:
        result = await self._refund.resume(copy.run, on=self._hf)
        assert result.status is then

    async def sweep(self) -> float:
        """What each worker does about once a second."""
        store = (await self._hf.service()).store
        began = perf_counter()
        assert await store.fire_timers(limit=100) == 0
        await store.next_timer()
        for due in Due:
            assert await store.due_holds(due, now=store.now(), limit=100) == []
        await store.next_due_hold()
        assert await store.reclaim(limit=100, max_recoveries=3) == []
        return perf_counter() - began

    async def answer(self) -> float:
        copy, people = self._copy(), await self._hf.holds()
        began = perf_counter()
        await people.answer(copy.hold, "yes", by=ADA.id)
        await self._resumed(copy, RunStatus.waiting)
        return self._resumed_at - began

    async def inbox(self) -> float:
        people = await self._hf.holds()
        began = perf_counter()
        page = await people.list(ADA)
        assert len(page.rows) == 50
        return perf_counter() - began

    async def runs(self) -> float:
        return await self._listed(RunFilter(tenant=TENANT))

    async def runs_by_status(self) -> float:
        return await self._listed(RunFilter(tenant=TENANT, status=(RunStatus.pending_input,)))

    async def _listed(self, where: RunFilter) -> float:
        service = await self._hf.service()
        began = perf_counter()
        page = await page_of_runs(service, where, None, 50)
        assert len(page.items) == 50
        return perf_counter() - began


async def _one() -> dict[str, Any]:
    return {}
