"""Runs that an engine drives instead of the built-in workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from holdfast.store.rows import ClaimRequest, RunFilter, RunMove, RunRow
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.lease import Lease
from holdfast.types.outbox import ENGINE_START, OutboxMessage
from holdfast.types.record import Kind, NewTimer, Refusal, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

ENGINE = "temporal://localhost:7233/default"
FOREVER = 253_402_300_799_000_000


def move_of(row: RunRow, to: str | None, **others: Any) -> RunMove:
    event = EventRow(0, 1, "run.moved", b"{}")
    return RunMove(
        run=row.id, worker=row.worker, term=row.term, head=row.head, event=event, to=to,
        lease_until=FOREVER if to else None, **others,
    )  # fmt: skip


async def parked(kit: StoreKit) -> RunRow:
    """With a timer."""
    lease = await kit.claimed()
    timer = NewTimer("nap", kit.clock.now() + TTL)
    await kit.settle(lease, kit.record(1, side=Side(timers=[timer])))
    assert await park(kit.store, lease)
    return await kit.row(lease.run)


@pytest.mark.anyio
class EngineRunSuite:
    @pytest.mark.covers("TD-38")
    async def test_run_that_waits_is_moved_to_an_engine_with_its_order_and_without_its_timers(
        self, kit: StoreKit
    ) -> None:
        row, store = await parked(kit), kit.store
        order = OutboxMessage(ENGINE_START, f"{ENGINE_START}:{row.id}:2", b"order")
        moved = await store.move_run(move_of(row, ENGINE, outbox=[order], limit="flow:x"))
        assert moved == await kit.row(row.id)
        assert moved is not None
        assert (moved.worker, moved.lease_until, moved.term) == (ENGINE, FOREVER, row.term + 1)
        assert (moved.status, moved.ready_at, moved.limit) == (row.status, None, "flow:x")
        assert await store.next_timer() is None
        (queued,) = await store.list_outbox(topic=ENGINE_START)
        assert (queued.run, queued.payload) == (row.id, b"order")
        events = await store.events(row.id, after=row.event_seq, limit=9)
        assert [each.type for each in events if isinstance(each, EventRow)] == ["run.moved"]
        # A message does not make it claimable, and the lease does not expire.
        assert await store.send(row.id, "steer", b"")
        kit.clock.advance(days=400)
        assert await store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        assert await store.reclaim(limit=9, max_recoveries=5) == []

    @pytest.mark.covers("TD-38")
    async def test_run_of_an_engine_is_moved_back_with_timers_and_claimable_only_with_a_message(
        self, kit: StoreKit
    ) -> None:
        store = kit.store
        row = await parked(kit)
        there = await store.move_run(move_of(row, ENGINE))
        assert there is not None
        timer = NewTimer("nap", kit.clock.now() + TTL)
        back = await store.move_run(move_of(there, None, timers=[timer]))
        assert back is not None
        assert (back.worker, back.lease_until, back.ready_at) == (None, None, None)
        assert (back.status, back.term) == (row.status, row.term + 2)
        assert await store.next_timer() == timer.fire_at
        lease = Lease(row.id, row.key, there.term, ENGINE)
        assert (await kit.settle(lease, kit.record(2))).refusal is Refusal.fenced

        other = await parked(kit)
        there = await store.move_run(move_of(other, ENGINE))
        assert there is not None
        assert await store.send(other.id, "steer", b"")
        back = await store.move_run(move_of(there, None))
        assert back is not None
        assert back.ready_at is not None
        (claim,) = await store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (claim.lease.run, claim.lease.term) == (other.id, back.term + 1)

    @pytest.mark.covers("TD-38")
    async def test_run_is_not_moved_when_it_runs_or_has_changed(self, kit: StoreKit) -> None:
        store = kit.store
        lease = await kit.claimed()
        row = await kit.row(lease.run)
        assert await store.move_run(move_of(row, ENGINE)) is None
        assert await kit.row(lease.run) == row
        row = await parked(kit)
        for changed in ({"term": 9}, {"head": 9}, {"worker": "other"}):
            assert await store.move_run(msgspec.structs.replace(move_of(row, ENGINE), **changed)) is None
        assert await store.move_run(move_of(row, ENGINE, resume=b"")) is None
        assert await kit.row(row.id) == row
        assert await store.list_outbox() == []

    @pytest.mark.covers("TD-38")
    async def test_run_has_one_owner_when_movers_and_workers_race(self, kit: StoreKit) -> None:
        row = await parked(kit)
        assert await kit.store.send(row.id, "steer", b"")

        async def contend(store: Store, number: int) -> list[str]:
            if number == 0:
                return [claim.lease.worker for claim in await store.claim(ClaimRequest(worker="w", ttl=TTL))]
            moved = await store.move_run(move_of(row, f"{ENGINE}{number}"))
            return [] if moved is None else [moved.worker or ""]

        (owner,) = [name for each in await kit.race(3, contend) for name in each]
        assert (await kit.row(row.id)).worker == owner

    @pytest.mark.covers("TD-38")
    async def test_failed_run_resumes_on_its_engine_with_the_message(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.settle(lease, kit.record(1, kind=Kind.end, side=Side(status=RunStatus.failed, error="no")))
        row = await kit.row(lease.run)
        moved = await kit.store.move_run(move_of(row, ENGINE, resume=b"{}"))
        assert moved is not None
        assert (moved.status, moved.worker, moved.error, moved.ended_at) == (
            RunStatus.running, ENGINE, None, None
        )  # fmt: skip
        _, mail = await kit.store.pending(row.id)
        assert [(each.kind, each.payload) for each in mail] == [("resume", b"{}")]

    @pytest.mark.covers("TD-37")
    async def test_run_with_a_lease_leaves_its_limit_and_is_admitted_again(self, kit: StoreKit) -> None:
        store = kit.store
        await store.put_limit(LimitRow(name="flow:x", concurrency=1))
        first, second = await kit.claimed(), await kit.claimed()
        assert await store.change_limit(first, "flow:x")
        assert await store.change_limit(first, "flow:x")
        assert not await store.change_limit(second, "flow:x")
        assert (await kit.row(second.run)).limit == ""
        assert await store.change_limit(first, "")
        assert await store.change_limit(second, "flow:x")
        assert not await store.change_limit(first, "flow:x")
        ((_, inside, _),) = await store.limits()
        assert inside == 1
        old = msgspec.structs.replace(second, term=second.term + 1)
        assert not await store.change_limit(old, "")

    @pytest.mark.covers("TD-21")
    async def test_failed_run_is_marked_as_a_dead_letter_once_and_can_be_resumed(self, kit: StoreKit) -> None:
        store, lease = kit.store, await kit.claimed()
        death = Death(term=lease.term, worker=ENGINE, at=1, lease_until=2, head=1, status="running")
        event = EventRow(0, 1, "run.given_up", b"{}")
        assert not await store.mark_dead(lease.run, death=death, event=event)
        await kit.settle(lease, kit.record(1, kind=Kind.end, side=Side(status=RunStatus.failed, error="no")))
        old = msgspec.structs.replace(death, term=9)
        assert not await store.mark_dead(lease.run, death=old, event=event)
        assert await store.mark_dead(lease.run, death=death, event=event)
        assert not await store.mark_dead(lease.run, death=death, event=event)
        row = await kit.row(lease.run)
        assert (row.status, row.dead, row.error) == (RunStatus.failed, True, "no")
        assert await store.deaths(lease.run) == [death]
        (found,) = await store.list_runs(RunFilter(dead=True), after=None, limit=9)
        assert found.id == lease.run
        moved = await store.move_run(move_of(row, ENGINE, resume=b""))
        assert moved is not None
        assert (moved.dead, moved.status) == (False, RunStatus.running)
