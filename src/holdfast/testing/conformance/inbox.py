"""The inbox: order, once, waking the run; evidence that comes late."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.ids import RunId
from holdfast.types.record import Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit


@pytest.mark.anyio
class InboxSuite:
    async def test_heads_are_the_counters_of_the_runs_that_are_there(self, kit: StoreKit) -> None:
        run, other = (await kit.created()).id, (await kit.created()).id
        await kit.store.send(run, "note", b"")
        await kit.store.send(run, "note", b"")
        assert await kit.store.inbox_heads([run, RunId("no-such-run"), other]) == {run: 2, other: 0}
        assert await kit.store.inbox_heads([]) == {}

    @pytest.mark.covers("D-29", "R-22")
    async def test_messages_are_read_in_the_order_they_came(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        for number in range(5):
            kit.clock.advance(seconds=1)
            assert await kit.store.send(run, f"k{number}", b"%d" % number)
        seen, rows = await kit.store.pending(run)
        assert seen == 5
        assert [(row.kind, row.payload) for row in rows] == [(f"k{n}", b"%d" % n) for n in range(5)]
        assert [row.id for row in rows] == sorted(row.id for row in rows)
        assert rows[-1].at == kit.clock.now()
        assert (await kit.row(run)).inbox_seq == 5

    async def test_reading_consumes_nothing(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        await kit.store.send(run, "note", b"")
        assert await kit.store.pending(run) == await kit.store.pending(run)

    @pytest.mark.covers("R-22", "CORE-STORE-11")
    async def test_message_is_delivered_once_when_sent_twice_under_one_key(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        other = (await kit.created()).id
        assert await kit.store.send(lease.run, "note", b"1", dedupe="k", event=kit.event()) is True
        assert await kit.store.send(lease.run, "note", b"2", dedupe="k", event=kit.event()) is False
        assert await kit.store.send(lease.run, "note", b"3", dedupe="l") is True
        assert await kit.store.send(other, "note", b"4", dedupe="k") is True
        seen, rows = await kit.store.pending(lease.run)
        assert (seen, [row.payload for row in rows]) == (2, [b"1", b"3"])
        assert (await kit.row(lease.run)).event_seq == 2
        done = Side(inbox_done=[row.id for row in rows])
        await kit.written(lease, kit.record(1, side=done))
        # The key is remembered after the message was consumed.
        assert await kit.store.send(lease.run, "note", b"5", dedupe="k") is False

    async def test_messages_without_a_key_are_all_delivered(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        assert [await kit.store.send(run, "note", b"") for _ in range(2)] == [True, True]
        assert len((await kit.store.pending(run))[1]) == 2

    async def test_one_message_arrives_when_senders_race_with_one_key(self, kit: StoreKit) -> None:
        run = (await kit.created()).id

        async def contend(store: Store, number: int) -> bool:
            return await store.send(run, "note", b"%d" % number, dedupe="k")

        assert sum(await kit.race(5, contend)) == 1
        assert (await kit.store.pending(run))[0] == 1

    async def test_every_message_arrives_when_senders_race(self, kit: StoreKit) -> None:
        run = (await kit.created()).id

        async def contend(store: Store, number: int) -> list[bool]:
            return [await store.send(run, "note", b"%d" % number, event=kit.event()) for _ in range(5)]

        await kit.race(4, contend)
        seen, rows = await kit.store.pending(run)
        assert (seen, len(rows), len({row.id for row in rows})) == (20, 20, 20)
        assert (await kit.row(run)).event_seq == 21

    @pytest.mark.covers("D-29", "R-6")
    async def test_parked_run_is_claimable_when_a_message_comes(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await park(kit.store, lease, status=RunStatus.pending_input)
        await kit.store.send(lease.run, "note", b"")
        row = await kit.row(lease.run)
        assert (row.status, row.ready_at) == (RunStatus.pending_input, kit.clock.now())
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (taken.lease.run, taken.lease.term) == (lease.run, 2)

    async def test_message_brings_a_later_wake_up_forward_and_never_delays_one(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await park(kit.store, lease, ready_at=kit.clock.now() + 10**9)
        await kit.store.send(lease.run, "note", b"")
        first = kit.clock.now()
        kit.clock.advance(seconds=9)
        await kit.store.send(lease.run, "note", b"")
        assert (await kit.row(lease.run)).ready_at == first

    async def test_message_leaves_a_working_run_to_its_worker(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.send(lease.run, "note", b"")
        row = await kit.row(lease.run)
        assert (row.worker, row.ready_at, row.term) == ("worker-1", None, 1)
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []

    @pytest.mark.covers("R-14")
    @pytest.mark.parametrize("status", [RunStatus.completed, RunStatus.cancelled])
    async def test_ended_run_takes_no_message(self, kit: StoreKit, status: RunStatus) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=status)))
        before = await kit.row(lease.run)
        for kind in ("cancel", "resume", "note"):
            assert await kit.store.send(lease.run, kind, b"", event=kit.event()) is False
        assert await kit.row(lease.run) == before

    @pytest.mark.covers("G-36")
    async def test_failed_run_is_resumable_when_asked_to_resume(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(status=RunStatus.failed, error="boom")))
        assert await kit.store.send(lease.run, "cancel", b"") is False
        assert await kit.store.send(lease.run, "resume", b"") is True
        row = await kit.row(lease.run)
        assert (row.status, row.ended_at) == (RunStatus.resumable, None)
        (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert taken.run.status is RunStatus.running
        _, (message,) = await kit.store.pending(lease.run)
        assert message.kind == "resume"

    @pytest.mark.covers("D-17")
    async def test_late_evidence_is_kept_without_a_lease(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.taken_over(lease)
        before = await kit.row(lease.run)
        for _ in range(2):
            await kit.store.report_late(lease.run, 1, b"it happened")
        await kit.store.report_late(lease.run, 2, "späť".encode())
        assert await kit.store.late_reports(lease.run) == [(1, b"it happened"), (2, "späť".encode())]
        assert await kit.row(lease.run) == before
