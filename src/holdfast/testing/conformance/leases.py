"""Leases: extending, releasing, and that an old term writes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import HoldfastError
from holdfast.store.rows import Capability, ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.types.lease import Lease
from holdfast.types.record import Refusal, RunBatch, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


async def park(
    store: Store,
    lease: Lease,
    seen: int = 0,
    *,
    status: RunStatus = RunStatus.waiting,
    ready_at: int | None = None,
) -> bool:
    return await store.park(lease, status=status, inbox_seen=seen, ready_at=ready_at)


@pytest.mark.anyio
class LeaseSuite:
    async def test_extended_lease_lives_on(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=50)
        assert await kit.store.extend([lease], TTL) == [True]
        assert (await kit.row(lease.run)).lease_until == kit.clock.now() + TTL
        kit.clock.advance(seconds=50)
        assert await kit.store.reclaim(limit=9, max_recoveries=9) == []

    @pytest.mark.covers("D-33")
    async def test_lapsed_lease_is_extended_while_its_term_stands(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(hours=5)
        assert await kit.store.extend([lease], TTL) == [True]
        assert await kit.store.reclaim(limit=9, max_recoveries=9) == []
        assert (await kit.settle(lease, kit.record(1))).refusal is None

    @pytest.mark.covers("D-33")
    async def test_extend_answers_for_each_lease_of_its_own(self, kit: StoreKit) -> None:
        lost, kept = await kit.claimed(), await kit.claimed()
        await kit.store.extend([kept], 10 * TTL)
        await kit.taken_over(lost)
        unknown = Lease(lost.run, 10**9, lost.term, lost.worker)
        assert await kit.store.extend([lost, kept, unknown], TTL) == [False, True, False]
        assert await kit.store.extend([], TTL) == []

    async def test_extend_says_the_same_when_called_twice(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await kit.store.extend([lease, lease], TTL) == [True, True]
        assert await kit.store.extend([lease], TTL) == [True]
        assert (await kit.row(lease.run)).term == 1

    async def test_inline_store_extends_at_once(self, kit: StoreKit) -> None:
        kit.needs(Capability.inline)
        extend_now = getattr(kit.store, "extend_now", None)
        assert extend_now is not None
        lease = await kit.claimed()
        assert extend_now([lease], 5 * TTL) == [True]
        assert (await kit.row(lease.run)).lease_until == kit.clock.now() + 5 * TTL
        await kit.store.extend([lease], TTL)
        await kit.taken_over(lease)
        assert extend_now([lease], TTL) == [False]

    @pytest.mark.covers("CORE-STORE-11", "D-6")
    async def test_every_write_is_refused_when_the_term_is_old(self, kit: StoreKit) -> None:
        old = await kit.claimed()
        newer = await kit.taken_over(old)
        before = await kit.row(old.run)
        # The same worker again: it is the term that decides, not the name.
        posing = Lease(old.run, old.key, old.term, newer.worker)
        for lease in (old, posing):
            assert (await kit.settle(lease, kit.record(1))).refusal is Refusal.fenced
            assert await park(kit.store, lease) is False
            assert await kit.store.extend([lease], 99 * TTL) == [False]
        assert await kit.row(old.run) == before
        assert len(await kit.store.read(old.run)) == 1

    async def test_inline_settle_is_refused_when_the_term_is_old(self, kit: StoreKit) -> None:
        kit.needs(Capability.inline)
        old = await kit.claimed()
        await kit.taken_over(old)
        answers = kit.store.settle_now([RunBatch(old, [kit.record(1)])])
        assert answers is not None
        assert answers[0].refusal is Refusal.fenced

    async def test_lease_that_was_given_back_writes_nothing(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await park(kit.store, lease) is True
        assert (await kit.settle(lease, kit.record(1))).refusal is Refusal.fenced
        assert await kit.store.extend([lease], TTL) == [False]

    async def test_parked_run_has_no_worker_and_keeps_its_term(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await park(kit.store, lease, status=RunStatus.pending_input) is True
        row = await kit.row(lease.run)
        assert (row.status, row.worker, row.lease_until) == (RunStatus.pending_input, None, None)
        assert (row.ready_at, row.ended_at, row.term) == (None, None, 1)
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        assert await kit.store.reclaim(limit=9, max_recoveries=9) == []

    @pytest.mark.covers("D-31")
    async def test_resting_run_shows_that_it_waits_and_stays_with_its_holder(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        for _ in range(2):
            assert await kit.store.set_idle(lease, status=RunStatus.pending_input) is True
        row = await kit.row(lease.run)
        assert (row.status, row.worker, row.term) == (RunStatus.pending_input, lease.worker, lease.term)
        await kit.store.send(lease.run, "resume", b"")
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        goes_on = kit.record(1, side=Side(status=RunStatus.running))
        assert (await kit.settle(lease, goes_on)).refusal is None
        assert (await kit.row(lease.run)).status is RunStatus.running

    @pytest.mark.covers("D-31")
    async def test_lease_that_was_given_back_lets_no_run_rest(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await park(kit.store, lease) is True
        assert await kit.store.set_idle(lease, status=RunStatus.pending_input) is False
        assert (await kit.row(lease.run)).status is RunStatus.waiting

    async def test_parking_again_changes_nothing(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await park(kit.store, lease) is True
        before = await kit.row(lease.run)
        assert await park(kit.store, lease, status=RunStatus.pending_input) is False
        assert await kit.row(lease.run) == before

    async def test_status_that_no_run_parks_in_is_an_error(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        before = await kit.row(lease.run)
        with pytest.raises(HoldfastError):
            await park(kit.store, lease, status=RunStatus.pending)
        assert await kit.row(lease.run) == before

    async def test_parked_run_is_claimable_from_the_moment_it_named(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        later = kit.clock.now() + 3600 * 1_000_000
        assert await park(kit.store, lease, ready_at=later) is True
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        kit.clock.advance(hours=1)
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (taken.lease.run, taken.lease.term) == (lease.run, 2)

    @pytest.mark.covers("D-29")
    async def test_run_is_not_parked_when_a_message_came_after_it_read(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        seen, _ = await kit.store.pending(lease.run)
        await kit.store.send(lease.run, "cancel", b"")
        assert await park(kit.store, lease, seen) is False
        row = await kit.row(lease.run)
        assert (row.status, row.worker) == (RunStatus.running, "worker-1")
        seen, rows = await kit.store.pending(lease.run)
        assert len(rows) == 1
        assert await park(kit.store, lease, seen) is True

    @pytest.mark.covers("D-29")
    async def test_no_message_is_lost_when_sending_races_with_parking(self, kit: StoreKit) -> None:
        for _ in range(5):
            lease = await kit.claimed()

            async def contend(store: Store, number: int, lease: Lease = lease) -> bool:
                if number:
                    return await store.send(lease.run, "note", b"")
                return await park(store, lease)

            parked, sent = await kit.race(2, contend)
            assert sent
            row = await kit.row(lease.run)
            # Either the worker still has the run and will read, or the message made it claimable.
            assert (row.worker is None and row.ready_at is not None) if parked else row.worker is not None

    async def test_ending_record_ends_the_lease(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        row = await kit.row(lease.run)
        assert (row.status, row.worker, row.lease_until) == (RunStatus.completed, None, None)
        assert (row.ready_at, row.ended_at) == (None, kit.clock.now())
        assert (await kit.settle(lease, kit.record(2))).refusal is Refusal.fenced
