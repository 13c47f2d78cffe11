"""Settling: ranges, the head, repeating, and one refused run among others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import HoldfastError
from holdfast.store.rows import Capability
from holdfast.testing.conformance.kit import TTL
from holdfast.types.lease import Lease
from holdfast.types.record import Refusal, RunBatch, SettleAnswer, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


@pytest.mark.anyio
class SettleSuite:
    @pytest.mark.covers("D-6")
    async def test_range_is_appended_and_moves_the_head(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        given = [kit.record(1), kit.record(2, node="späť", events=3), kit.record(3, events=0)]
        kit.clock.advance(seconds=1)
        assert await kit.settle(lease, *given) == SettleAnswer(lease.run, None, 2)
        row = await kit.row(lease.run)
        assert (row.head, row.event_seq, row.updated_at) == (3, 5, kit.clock.now())
        stored = await kit.store.read(lease.run, first=1)
        assert [record.event_from for record in stored] == [2, 3, 6]
        for record in stored:
            record.event_from = record.size = 0
        assert stored == given

    @pytest.mark.covers("D-6", "G-2")
    async def test_range_that_does_not_follow_the_head_is_refused(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert (await kit.settle(lease, kit.record(2))).refusal is Refusal.head_moved
        assert (await kit.settle(lease, kit.record(1), kit.record(3))).refusal is Refusal.head_moved
        assert (await kit.row(lease.run)).head == 0
        assert len(await kit.store.read(lease.run)) == 1

    @pytest.mark.covers("D-8", "CORE-STORE-11")
    async def test_same_range_is_accepted_again_and_written_once(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        given = [kit.record(1), kit.record(2)]
        first = await kit.written(lease, *given)
        await kit.written(lease, kit.record(3))
        before = await kit.row(lease.run)
        assert await kit.settle(lease, *given) == first
        assert await kit.settle(lease, given[1]) == SettleAnswer(lease.run, None, 3)
        assert await kit.row(lease.run) == before
        assert len(await kit.whole_feed()) == 3

    @pytest.mark.covers("D-8")
    async def test_ending_range_is_accepted_again_after_it_ended_the_lease(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        last = kit.record(1, side=Side(status=RunStatus.completed))
        first = await kit.written(lease, last)
        kit.clock.advance(seconds=5)
        before = await kit.row(lease.run)
        assert await kit.settle(lease, last) == first
        assert await kit.row(lease.run) == before

    @pytest.mark.covers("D-8")
    async def test_other_record_at_the_same_place_is_refused(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        other = kit.record(1, payload=b"other")
        assert (await kit.settle(lease, other)).refusal is Refusal.head_moved
        assert (await kit.settle(lease, other, kit.record(2))).refusal is Refusal.head_moved
        (stored,) = await kit.store.read(lease.run, first=1)
        assert stored.payload == b"record 1"

    @pytest.mark.covers("D-8")
    async def test_same_digest_under_another_term_is_refused(self, kit: StoreKit) -> None:
        old = await kit.claimed()
        await kit.written(old, kit.record(1))
        newer = await kit.taken_over(old)
        assert (await kit.settle(newer, kit.record(1, term=newer.term))).refusal is Refusal.head_moved

    @pytest.mark.covers("D-8")
    async def test_known_beginning_of_a_range_is_skipped(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1), kit.record(2))
        answer = await kit.settle(lease, kit.record(1), kit.record(2), kit.record(3))
        assert answer == SettleAnswer(lease.run, None, 2)
        assert [record.seq for record in await kit.store.read(lease.run)] == [0, 1, 2, 3]
        assert (await kit.row(lease.run)).event_seq == 4

    @pytest.mark.covers("D-6")
    async def test_refused_run_never_fails_the_others(self, kit: StoreKit) -> None:
        good, fenced, moved, late = [await kit.claimed() for _ in range(4)]
        await kit.store.extend([good, moved, late], 9 * TTL)
        await kit.taken_over(fenced)
        taken = kit.record(1, side=Side(inbox_done=[10**9]))
        answers = await kit.store.settle(
            [
                RunBatch(fenced, [kit.record(1)]),
                RunBatch(good, [kit.record(1)]),
                RunBatch(moved, [kit.record(5)]),
                RunBatch(late, [taken]),
            ]
        )
        assert [answer.run for answer in answers] == [fenced.run, good.run, moved.run, late.run]
        refusals = [Refusal.fenced, None, Refusal.head_moved, Refusal.inbox_taken]
        assert [answer.refusal for answer in answers] == refusals
        heads = [(await kit.row(lease.run)).head for lease in (fenced, good, moved, late)]
        assert heads == [0, 1, 0, 0]

    async def test_lease_that_names_another_run_is_refused(self, kit: StoreKit) -> None:
        lease, other = await kit.claimed(), await kit.claimed()
        crossed = Lease(lease.run, other.key, lease.term, lease.worker)
        assert (await kit.settle(crossed, kit.record(1))).refusal is Refusal.fenced
        unknown = Lease(lease.run, 10**9, lease.term, lease.worker)
        assert (await kit.settle(unknown, kit.record(1))).refusal is Refusal.fenced

    async def test_one_range_wins_when_two_settle_at_once(self, kit: StoreKit) -> None:
        lease = await kit.claimed()

        async def contend(store: Store, number: int) -> Refusal | None:
            (answer,) = await store.settle([RunBatch(lease, [kit.record(1, payload=b"%d" % number)])])
            return answer.refusal

        refusals = await kit.race(4, contend)
        assert sorted(refusals, key=bool) == [None] + [Refusal.head_moved] * 3
        assert (await kit.row(lease.run)).event_seq == 2

    async def test_status_that_may_not_follow_is_an_error_and_writes_nothing(self, kit: StoreKit) -> None:
        lease, other = await kit.claimed(), await kit.claimed()
        before = await kit.row(lease.run)
        wrong = kit.record(1, side=Side(status=RunStatus.pending))
        with pytest.raises(HoldfastError):
            await kit.store.settle([RunBatch(other, [kit.record(1)]), RunBatch(lease, [wrong])])
        assert await kit.row(lease.run) == before
        assert (await kit.row(other.run)).head == 0
        assert (await kit.settle(lease, kit.record(1))).refusal is None

    @pytest.mark.covers("RS-STORE-5", "RS-STORE-17", "G-3")
    async def test_settled_record_shares_nothing_with_the_callers(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        given = kit.record(1, side=Side(error="e"))
        batch = RunBatch(lease, [given])
        await kit.store.settle([batch])
        assert (given.event_from, given.side, batch.records) == (0, Side(error="e"), [given])
        given.payload = b"changed"
        (stored,) = await kit.store.read(lease.run, first=1)
        assert (stored.payload, stored.side) == (b"record 1", None)

    async def test_inline_settle_is_seen_at_once(self, kit: StoreKit) -> None:
        kit.needs(Capability.inline)
        lease = await kit.claimed()
        batch = [RunBatch(lease, [kit.record(1)])]
        assert kit.store.settle_now(batch) == [SettleAnswer(lease.run, None, 2)]
        assert (await kit.row(lease.run)).head == 1
        assert kit.store.settle_now(batch) == [SettleAnswer(lease.run, None, 2)]
        assert await kit.settle(lease, kit.record(2)) == SettleAnswer(lease.run, None, 3)
