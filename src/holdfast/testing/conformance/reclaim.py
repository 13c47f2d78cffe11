"""Runs whose worker was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.base import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.record import Refusal
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.base import RunRow, Store
    from holdfast.testing.conformance.kit import StoreKit


async def reclaim(kit: StoreKit, limit: int = 9, max_recoveries: int = 5) -> list[RunRow]:
    return await kit.store.reclaim(limit=limit, max_recoveries=max_recoveries)


@pytest.mark.anyio
class ReclaimSuite:
    @pytest.mark.covers("R-34")
    async def test_run_is_resumable_when_its_lease_lapsed(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=59)
        assert await reclaim(kit) == []
        kit.clock.advance(seconds=1)
        (row,) = await reclaim(kit)
        assert row == await kit.row(lease.run)
        assert (row.status, row.term, row.recoveries) == (RunStatus.resumable, 2, 1)
        assert (row.worker, row.lease_until) == (None, None)
        assert row.ready_at is not None
        assert row.ready_at <= kit.clock.now()
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (taken.lease.run, taken.lease.term) == (lease.run, 3)

    @pytest.mark.covers("CORE-STORE-11", "D-33")
    async def test_reclaimed_run_is_left_alone_and_its_old_lease_is_refused(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit)
        assert await reclaim(kit) == []
        assert await kit.store.extend([lease], TTL) == [False]
        assert (await kit.settle(lease, kit.record(1))).refusal is Refusal.fenced
        assert await park(kit.store, lease) is False
        assert await kit.row(lease.run) == row

    @pytest.mark.covers("R-35")
    async def test_run_is_recovered_once_when_reapers_race(self, kit: StoreKit) -> None:
        runs = [(await kit.claimed()).run for _ in range(4)]
        kit.clock.advance(seconds=61)

        async def contend(store: Store, _number: int) -> list[str]:
            return [row.id for row in await store.reclaim(limit=9, max_recoveries=5)]

        recovered = [run for each in await kit.race(3, contend) for run in each]
        assert sorted(recovered) == sorted(runs)
        assert {(await kit.row(run)).recoveries for run in runs} == {1}

    async def test_run_fails_with_evidence_when_it_was_recovered_too_often(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        for expected in (RunStatus.resumable, RunStatus.resumable, RunStatus.failed):
            kit.clock.advance(seconds=61)
            (row,) = await reclaim(kit, max_recoveries=2)
            assert row.status is expected
            if expected is RunStatus.resumable:
                await kit.claim(lease.run, "doomed-worker")
        assert row.error is not None
        assert "doomed-worker" in row.error
        assert (row.ready_at, row.worker, row.ended_at) == (None, None, kit.clock.now())
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=lease.run)) == []

    async def test_run_that_failed_so_may_be_resumed_and_recovered_anew(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit, max_recoveries=0)
        assert row.status is RunStatus.failed
        assert await kit.store.send(lease.run, "resume", b"") is True
        await kit.claim(lease.run)
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit, max_recoveries=1)
        assert row.status is RunStatus.resumable

    @pytest.mark.covers("D-31")
    async def test_resting_run_keeps_its_status_and_its_count_when_its_lease_lapsed(
        self, kit: StoreKit
    ) -> None:
        lease = await kit.claimed()
        assert await kit.store.rest(lease, status=RunStatus.pending_input)
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit, max_recoveries=0)
        assert (row.status, row.recoveries, row.worker) == (RunStatus.pending_input, 0, None)
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (taken.run.status, taken.lease.term) == (RunStatus.running, lease.term + 2)

    async def test_runs_without_a_lease_are_not_touched(self, kit: StoreKit) -> None:
        pending = await kit.created()
        lease = await kit.claimed()
        await park(kit.store, lease)
        kit.clock.advance(days=9)
        assert await reclaim(kit) == []
        assert (await kit.row(pending.id)).status is RunStatus.pending
        assert (await kit.row(lease.run)).status is RunStatus.waiting

    async def test_reaper_obeys_its_limit_longest_lapsed_first(self, kit: StoreKit) -> None:
        leases = [await kit.claimed() for _ in range(5)]
        await kit.store.extend(leases[:4], 2 * TTL)
        kit.clock.advance(seconds=121)
        assert [row.id for row in await reclaim(kit, limit=1)] == [leases[4].run]
        await kit.claimed()
        kit.clock.advance(seconds=61)
        assert [len(await reclaim(kit, limit=2)) for _ in range(4)] == [2, 2, 1, 0]
