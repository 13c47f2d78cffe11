"""A store that lost acknowledged records: the run stops, whichever caller detects it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.store.lost_history import is_lost
from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.acknowledged import AcknowledgedState
from holdfast.types.event import EventRow
from holdfast.types.ids import new_run_id
from holdfast.types.record import Record, Refusal, Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease


def known(kit: StoreKit, lease: Lease, record: Record, **more: Any) -> AcknowledgedState:
    """That this record was acknowledged."""
    shown: dict[str, Any] = {
        "head": record.seq,
        "term": record.term,
        "at": record.at,
        "worker": lease.worker,
        **more,
    }
    return AcknowledgedState(run=lease.run, **shown)


@pytest.mark.anyio
@pytest.mark.covers("FLEET-PG-08")
class LostHistorySuite:
    async def test_run_goes_on_when_the_store_has_all_that_was_acknowledged(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1), kit.record(2))
        before = await kit.row(lease.run)
        for seq in (0, 1, 2):
            (record,) = await kit.store.read(lease.run, first=seq, last=seq)
            assert await kit.store.lost_history(known(kit, lease, record)) is None
        assert await kit.row(lease.run) == before

    async def test_run_stops_when_a_record_is_missing(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        row = await kit.store.lost_history(known(kit, lease, kit.record(7), term=9, events=40))
        assert row is not None
        assert row == await kit.row(lease.run)
        assert (row.status, row.head, row.term) == (RunStatus.failed, 1, 10)
        assert (row.worker, row.lease_until, row.ready_at) == (None, None, None)
        assert is_lost(row.error)
        assert "record 7" in (row.error or "")
        assert "newest record is 1" in (row.error or "")

    async def test_event_of_a_loss_has_a_number_that_no_reader_has_seen(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.lost_history(known(kit, lease, kit.record(7), events=40))
        (event,) = await kit.store.events(lease.run, after=40, limit=9)
        assert isinstance(event, EventRow)
        assert (event.number, event.type) == (41, "run.history_lost")
        reply = msgspec.json.decode(event.payload)
        assert (reply["acknowledged"], reply["head"], reply["worker"]) == (7, 0, lease.worker)

    async def test_run_that_lost_its_history_is_not_claimed(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.lost_history(known(kit, lease, kit.record(3)))
        assert await kit.store.extend([lease], TTL) == [False]
        assert (await kit.settle(lease, kit.record(1))).refusal is Refusal.fenced
        for run in (None, lease.run):
            assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=run)) == []
        assert await kit.store.send(lease.run, "note", b"") is False

    async def test_run_continues_after_a_loss_when_a_resume_is_requested(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        lost = known(kit, lease, kit.record(3))
        await kit.store.lost_history(lost)
        assert await kit.store.send(lease.run, "resume", b"") is True
        (claim,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        await kit.written(claim.lease, kit.record(1, term=claim.lease.term))
        # A later caller sees that the loss was already recorded and accepted.
        assert await kit.store.lost_history(lost) is None
        assert (await kit.row(lease.run)).status is RunStatus.running

    async def test_loss_is_said_once_when_it_is_found_twice(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert await kit.store.lost_history(known(kit, lease, kit.record(3))) is not None
        assert await kit.store.lost_history(known(kit, lease, kit.record(3))) is None
        result = await kit.store.events(lease.run, after=0, limit=9)
        assert [event.type for event in result if isinstance(event, EventRow)] == ["run.history_lost"]

    async def test_run_stops_when_another_record_has_the_number(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1), kit.record(2))
        (record,) = await kit.store.read(lease.run, first=1, last=1)
        assert await kit.store.lost_history(known(kit, lease, record, at=record.at - 1)) is not None
        assert (await kit.row(lease.run)).status is RunStatus.failed

    async def test_run_that_waits_stops_and_keeps_its_question(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease, kit.new_hold(1))
        assert await park(kit.store, lease, status=RunStatus.pending_input)
        row = await kit.store.lost_history(known(kit, lease, kit.record(9)))
        assert row is not None
        assert row.status is RunStatus.failed
        assert (await kit.hold(hold)).status is HoldStatus.pending

    async def test_run_that_has_ended_keeps_its_status(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.completed)))
        row = await kit.store.lost_history(known(kit, lease, kit.record(9)))
        assert row is not None
        assert row.status is RunStatus.completed
        assert is_lost(row.error)

    async def test_message_that_is_missing_stops_the_run(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.send(lease.run, "note", b"")
        assert await kit.store.lost_history(known(kit, lease, kit.record(0), head=0, mail=1)) is None
        row = await kit.store.lost_history(known(kit, lease, kit.record(0), head=0, mail=2))
        assert row is not None
        assert "message 2" in (row.error or "")

    async def test_decision_that_is_missing_stops_the_run(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease, kit.new_hold(1))
        version = (await kit.hold(hold)).version
        shown = {"head": 0, "hold": hold}
        first = kit.record(0)
        assert await kit.store.lost_history(known(kit, lease, first, version=version, **shown)) is None
        assert (
            await kit.store.lost_history(known(kit, lease, first, version=version + 1, **shown)) is not None
        )
        assert (await kit.row(lease.run)).status is RunStatus.failed

    async def test_nothing_is_said_of_records_that_were_pruned(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1), kit.record(2), kit.record(3))
        await kit.store.prune(lease.run, horizon=2, replace=None)
        for seq in (1, 2):
            lost = known(kit, lease, kit.record(seq), at=1)
            assert await kit.store.lost_history(lost) is None

    async def test_run_that_is_not_there_is_nobodys_loss(self, kit: StoreKit) -> None:
        lost = AcknowledgedState(run=new_run_id(), head=1, term=1, at=1)
        assert await kit.store.lost_history(lost) is None
