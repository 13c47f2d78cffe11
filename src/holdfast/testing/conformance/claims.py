"""Claims: who gets which run, and that only one does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.types.record import Refusal, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import RunId


async def claim(
    store: Store,
    limit: int = 1,
    lanes: tuple[str, ...] | None = None,
    versions: tuple[str, ...] | None = None,
    worker: str = "w",
) -> list[RunId]:
    want = ClaimRequest(worker=worker, ttl=TTL, limit=limit, lanes=lanes, versions=versions)
    return [taken.run.id for taken in await store.claim(want)]


@pytest.mark.anyio
class ClaimSuite:
    async def test_claimed_run_is_running_under_a_grown_term(self, kit: StoreKit) -> None:
        row = await kit.created()
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert taken.run == await kit.row(row.id)
        assert (taken.lease.run, taken.lease.key, taken.lease.term) == (row.id, row.key, 1)
        assert (taken.run.status, taken.run.worker) == (RunStatus.running, "w")
        assert taken.run.lease_until == kit.clock.now() + TTL

    async def test_claim_takes_a_run_only_once_when_called_twice(self, kit: StoreKit) -> None:
        row = await kit.created()
        assert await claim(kit.store) == [row.id]
        assert await claim(kit.store) == []
        assert (await kit.row(row.id)).term == 1

    async def test_run_is_claimable_from_its_ready_time_on(self, kit: StoreKit) -> None:
        row = await kit.created(ready_at=kit.clock.now() + 5_000_000)
        never = await kit.created(ready_at=None)
        assert await claim(kit.store, 9) == []
        kit.clock.advance(seconds=5)
        assert await claim(kit.store, 9) == [row.id]
        assert (await kit.row(never.id)).status is RunStatus.pending

    async def test_worker_gets_only_its_lanes_and_versions(self, kit: StoreKit) -> None:
        slow = await kit.created(lane="slow")
        new = await kit.created(version="v2")
        old = await kit.created()
        assert await claim(kit.store, 9, lanes=("other",)) == []
        assert await claim(kit.store, 9, lanes=()) == []
        assert await claim(kit.store, 9, versions=("v3",)) == []
        assert await claim(kit.store, 9, lanes=("main", "x"), versions=("v2", "v3")) == [new.id]
        assert await claim(kit.store, 9, lanes=("slow",)) == [slow.id]
        assert await claim(kit.store, 9) == [old.id]

    async def test_worker_gets_every_version_of_a_dialect_that_it_speaks(self, kit: StoreKit) -> None:
        drawn = await kit.created(version="attractor-0a1b")
        coded = await kit.created(version="g1-0a1b")
        bare = await kit.created(version="attractor")
        assert await claim(kit.store, 9, versions=("attract", "attractor-0a", "g1-")) == []
        assert set(await claim(kit.store, 9, versions=("attractor", "g1-other"))) == {drawn.id, bare.id}
        for wanted, taken in ((("attractor",), 0), (("g1",), 1)):
            named = ClaimRequest(worker="w", ttl=TTL, run=coded.id, versions=wanted)
            assert len(await kit.store.claim(named)) == taken

    async def test_higher_priority_goes_first_then_the_longer_ready(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        late = await kit.created(ready_at=now - 1)
        early = await kit.created(ready_at=now - 9)
        urgent = await kit.created(priority=5, ready_at=now)
        low = await kit.created(priority=-5, ready_at=now - 99)
        order = [await claim(kit.store) for _ in range(4)]
        assert order == [[urgent.id], [early.id], [late.id], [low.id]]

    async def test_claim_obeys_its_limit(self, kit: StoreKit) -> None:
        for _ in range(5):
            await kit.created()
        assert len(await claim(kit.store, 3)) == 3
        assert len(await claim(kit.store, 3)) == 2

    async def test_small_tenant_is_not_starved_by_a_big_one(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        big = [(await kit.created(tenant="big", ready_at=now - 100 + n)).id for n in range(6)]
        small = [(await kit.created(tenant="small", ready_at=now - n)).id for n in range(2)]
        order = [(await claim(kit.store))[0] for _ in range(4)]
        assert set(order) == {*big[:2], *small}
        # Now both have two running: what is left belongs to the big one.
        assert await claim(kit.store, 9) == big[2:]

    async def test_tenants_with_equal_load_take_turns(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        for n in range(4):
            await kit.created(tenant="a", ready_at=now - 100 + n)
            await kit.created(tenant="b", ready_at=now - 50 + n)
        served: list[str] = []
        for _ in range(8):
            (run,) = await claim(kit.store)
            served.append((await kit.row(run)).tenant)
        assert [sorted(served[n : n + 2]) for n in (0, 2, 4, 6)] == [["a", "b"]] * 4

    async def test_tenant_with_fewer_running_runs_goes_first(self, kit: StoreKit) -> None:
        await kit.claimed(tenant="busy")
        # Served last, but nothing of it runs any more.
        lease = await kit.claimed(tenant="idle")
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        await kit.created(tenant="busy", ready_at=1)
        waiting = await kit.created(tenant="idle", ready_at=2)
        assert await claim(kit.store) == [waiting.id]

    async def test_tenant_that_was_served_last_waits_its_turn(self, kit: StoreKit) -> None:
        lease = await kit.claimed(tenant="a")
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        first = await kit.created(tenant="a", ready_at=1)
        second = await kit.created(tenant="b", ready_at=2)
        assert await claim(kit.store) == [second.id]
        assert await claim(kit.store) == [first.id]

    @pytest.mark.covers("R-35")
    async def test_each_run_has_one_winner_when_claimers_race(self, kit: StoreKit) -> None:
        runs = {(await kit.created()).id for _ in range(12)}

        async def contend(store: Store, number: int) -> list[RunId]:
            taken: list[RunId] = []
            while got := await claim(store, 2, worker=f"w{number}"):
                taken += got
            return taken

        taken = [run for each in await kit.race(4, contend) for run in each]
        assert sorted(taken) == sorted(runs)
        assert {(await kit.row(run)).term for run in runs} == {1}

    @pytest.mark.covers("R-35")
    async def test_named_run_has_one_winner_when_claimers_race(self, kit: StoreKit) -> None:
        row = await kit.created()

        async def contend(store: Store, number: int) -> int:
            return len(await store.claim(ClaimRequest(worker=f"w{number}", ttl=TTL, run=row.id)))

        assert sum(await kit.race(4, contend)) == 1

    async def test_named_run_is_taken_whatever_its_lane_and_ready_time(self, kit: StoreKit) -> None:
        row = await kit.created(lane="x", ready_at=None)
        want = ClaimRequest(worker="w", ttl=TTL, lanes=("main",), run=row.id)
        (taken,) = await kit.store.claim(want)
        assert taken.run.id == row.id
        assert await kit.store.claim(want) == []

    async def test_lapsed_lease_is_taken_only_by_name(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=61)
        assert await claim(kit.store) == []
        newer = (await kit.claim(lease.run, "worker-2")).lease
        assert newer.term == lease.term + 1
        assert (await kit.settle(lease, kit.record(1))).refusal is Refusal.fenced
        assert (await kit.settle(newer, kit.record(1, term=2))).refusal is None

    async def test_ended_run_is_never_claimed(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        assert await claim(kit.store) == []
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=lease.run)) == []
