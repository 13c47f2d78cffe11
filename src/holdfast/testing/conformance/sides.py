"""What a record changes outside the journal, in its own transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import RunEndedError
from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.types.hold import OPEN_ONLY_FIELDS, HoldChange, HoldClosed, HoldRow
from holdfast.types.ids import new_run_id
from holdfast.types.record import NewTimer, OutboxMessage, Refusal, Side
from holdfast.types.status import ENDED, TRANSITIONS, HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

DIGEST = b"\x01" * 32


@pytest.mark.anyio
class SideSuite:
    @pytest.mark.covers("R-10")
    @pytest.mark.parametrize("status", sorted(TRANSITIONS[RunStatus.running]))
    async def test_record_sets_the_runs_status(self, kit: StoreKit, status: RunStatus) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=status, error="why")))
        row = await kit.row(lease.run)
        assert (row.status, row.error) == (status, "why")
        ended = status in ENDED
        assert (row.ended_at == kit.clock.now(), row.worker is None) == (ended, ended)

    @pytest.mark.covers("D-29")
    async def test_record_consumes_exactly_its_inbox_rows(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        for text in (b"a", b"b", b"c"):
            await kit.store.send(lease.run, "note", text)
        seen, rows = await kit.store.pending(lease.run)
        await kit.written(lease, kit.record(1, side=Side(inbox_done=[rows[0].id, rows[2].id])))
        assert await kit.store.pending(lease.run) == (seen, [rows[1]])

    @pytest.mark.covers("D-29")
    async def test_range_is_refused_when_an_inbox_row_is_consumed_or_unknown(self, kit: StoreKit) -> None:
        lease, other = await kit.claimed(), await kit.claimed()
        for run in (lease.run, other.run):
            await kit.store.send(run, "note", b"")
        ((_, (mine,)), (_, (foreign,))) = [
            await kit.store.pending(lease.run),
            await kit.store.pending(other.run),
        ]
        await kit.written(lease, kit.record(1, side=Side(inbox_done=[mine.id])))
        await kit.store.send(lease.run, "note", b"")
        (waiting,) = (await kit.store.pending(lease.run))[1]
        # Alone, beside one that waits, and the same one twice: stores may look up one row in another way.
        wrong = [mine.id, foreign.id, 10**9]
        for rows in (*([row] for row in wrong), *([waiting.id, row] for row in wrong), [waiting.id] * 2):
            refused = kit.record(3, side=Side(inbox_done=rows))
            assert (await kit.settle(lease, kit.record(2), refused)).refusal is Refusal.inbox_taken
        both = [kit.record(seq, side=Side(inbox_done=[waiting.id])) for seq in (2, 3)]
        assert (await kit.settle(lease, *both)).refusal is Refusal.inbox_taken
        assert (await kit.row(lease.run)).head == 1
        assert (await kit.store.pending(lease.run))[1] == [waiting]
        assert (await kit.store.pending(other.run))[1] == [foreign]

    @pytest.mark.covers("D-28")
    async def test_asked_record_opens_a_pending_hold(self, kit: StoreKit) -> None:
        lease = await kit.claimed(tenant="acme", flow="order")
        hold = await kit.asked(lease)
        row = await kit.hold(hold)
        assert (row.run, row.tenant, row.flow, row.seq) == (lease.run, "acme", "order", 1)
        assert (row.status, row.version, row.resolution) == (HoldStatus.pending, 1, None)

    async def test_record_closes_only_pending_holds(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        answered, waiting = kit.new_hold(1), kit.new_hold(1, ordinal=1)
        await kit.written(lease, kit.record(1, side=Side(holds=[answered, waiting])))
        await kit.decide(answered.id, event=kit.event())
        closed = [HoldClosed(h.id, HoldStatus.cancelled, "not needed") for h in (answered, waiting)]
        await kit.written(lease, kit.record(2, side=Side(close_holds=closed)))
        assert (await kit.hold(answered.id)).status is HoldStatus.resolved
        row = await kit.hold(waiting.id)
        assert (row.status, row.closed_reason, row.version) == (HoldStatus.cancelled, "not needed", 2)

    async def test_closed_hold_keeps_nothing_that_only_an_open_one_has(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        holds = [await kit.asked(lease, kit.new_hold(n, ordinal=n), n) for n in (1, 2)]
        known = {"claimed_by": "ada", "claim_until": 9, "placed": b"{}", "placed_by": "ada",
                 "placed_until": 9, "paused_at": 5, "remind_at": 7}  # fmt: skip
        for hold in holds:
            change = HoldChange(hold=hold, version=1, at=kit.clock.now(), fields=known)
            assert isinstance(await kit.store.change_hold(change), HoldRow)
        closed = [HoldClosed(holds[0], HoldStatus.cancelled, "not needed")]
        await kit.written(lease, kit.record(3, side=Side(close_holds=closed)))
        await kit.written(lease, kit.record(4, side=Side(status=RunStatus.failed, close_all_holds="over")))
        for hold in holds:
            row = await kit.hold(hold)
            assert row.status is HoldStatus.cancelled
            assert {name: getattr(row, name) for name in OPEN_ONLY_FIELDS} == dict.fromkeys(OPEN_ONLY_FIELDS)

    @pytest.mark.covers("D-32")
    async def test_ending_record_closes_every_open_hold_and_timer_of_its_run(self, kit: StoreKit) -> None:
        lease, other = await kit.claimed(), await kit.claimed()
        holds = [await kit.asked(lease, kit.new_hold(n, ordinal=n), n) for n in (1, 2)]
        foreign = await kit.asked(other)
        timers = [NewTimer("a", 1), NewTimer("b", 2)]
        await kit.written(lease, kit.record(3, side=Side(timers=timers)))
        ending = Side(status=RunStatus.cancelled, close_all_holds="run cancelled", close_all_timers=True)
        await kit.written(lease, kit.record(4, side=ending))
        for hold in holds:
            row = await kit.hold(hold)
            assert (row.status, row.closed_reason) == (HoldStatus.cancelled, "run cancelled")
        assert (await kit.hold(foreign)).status is HoldStatus.pending
        assert await kit.store.next_timer() is None

    @pytest.mark.covers("USERS-CHILD-CANCEL")
    async def test_record_that_cancels_a_run_asks_its_live_children_to_stop(self, kit: StoreKit) -> None:
        parent = await kit.claimed()
        live, ended = await kit.claimed(parent_run=parent.run), await kit.claimed(parent_run=parent.run)
        other = await kit.claimed()
        await kit.written(ended, kit.record(1, side=Side(status=RunStatus.completed)))
        end = kit.record(1, side=Side(status=RunStatus.cancelled))
        for _ in range(2):  # its answer may be lost
            await kit.written(parent, end)
            (message,) = (await kit.store.pending(live.run))[1]
            assert (message.kind, parent.run in message.payload.decode()) == ("cancel", True)
        # An operator who cancels it too is no second request.
        assert not await kit.store.send(live.run, "cancel", b"{}", dedupe="cancel")
        for lease in (ended, other):
            assert (await kit.store.pending(lease.run))[1] == []

    @pytest.mark.covers("USERS-CHILD-CANCEL")
    async def test_no_child_is_created_when_its_parent_was_cancelled(self, kit: StoreKit) -> None:
        parent = await kit.claimed()
        await kit.written(parent, kit.record(1, side=Side(status=RunStatus.cancelled)))
        with pytest.raises(RunEndedError, match="starts no further runs"):
            await kit.created(parent_run=parent.run)
        # A parent that is kept elsewhere is no reason to refuse.
        await kit.created(parent_run=new_run_id())

    @pytest.mark.covers("D-37")
    async def test_range_is_refused_when_it_names_a_blob_that_is_not_there(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        naming = kit.record(2, side=Side(blobs=[DIGEST], timers=[NewTimer("t", 1)]))
        assert (await kit.settle(lease, kit.record(1), naming)).refusal is Refusal.put_blobs_again
        assert (await kit.row(lease.run)).head == 0
        assert await kit.store.next_timer() is None
        await kit.store.put_blob(DIGEST, 3, b"abc")
        assert (await kit.settle(lease, kit.record(1), naming)).refusal is None

    async def test_nothing_of_a_refused_range_is_written(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.send(lease.run, "note", b"")
        seen, (row,) = await kit.store.pending(lease.run)
        hold = kit.new_hold(1)
        side = Side(
            status=RunStatus.completed,
            error="e",
            holds=[hold],
            timers=[NewTimer("t", 1)],
            inbox_done=[row.id],
            outbox=[OutboxMessage("topic", "key", b"{}")],
            blobs=[DIGEST],
        )
        before = await kit.row(lease.run)
        assert (await kit.settle(lease, kit.record(1, side=side))).refusal is Refusal.put_blobs_again
        assert await kit.row(lease.run) == before
        assert await kit.store.pending(lease.run) == (seen, [row])
        assert await kit.store.hold(hold.id) is None
        assert await kit.store.next_timer() is None

    @pytest.mark.covers("D-8", "CORE-STORE-11")
    async def test_side_is_written_once_when_the_range_is_settled_twice(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.send(lease.run, "note", b"")
        _, (row,) = await kit.store.pending(lease.run)
        hold = kit.new_hold(1)
        await kit.store.put_blob(DIGEST, 1, b"x")
        side = Side(
            holds=[hold],
            timers=[NewTimer("t", kit.clock.now())],
            inbox_done=[row.id],
            outbox=[OutboxMessage("topic", "key", b"{}")],
            blobs=[DIGEST],
        )
        record = kit.record(1, side=side)
        first = await kit.written(lease, record)
        await kit.decide(hold.id, event=kit.event())
        assert await kit.store.fire_timers(limit=9) == 1
        before = (await kit.row(lease.run), await kit.hold(hold.id), await kit.store.pending(lease.run))
        assert await kit.settle(lease, record) == first
        after = (await kit.row(lease.run), await kit.hold(hold.id), await kit.store.pending(lease.run))
        assert after == before
        assert await kit.store.next_timer() is None

    @pytest.mark.covers("D-35")
    async def test_first_records_of_a_run_may_open_holds_and_timers(self, kit: StoreKit) -> None:
        hold = kit.new_hold(0)
        side = Side(holds=[hold], timers=[NewTimer("t", kit.clock.now())])
        row = await kit.created(
            first=[kit.record(0, term=0, side=side), kit.record(1, term=0)], ready_at=None
        )
        assert (row.head, row.event_seq) == (1, 2)
        assert (await kit.hold(hold.id)).run == row.id
        assert await kit.store.fire_timers(limit=9) == 1
        assert len(await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))) == 1
