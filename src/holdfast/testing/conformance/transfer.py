"""Whole runs: read in one snapshot, written as history that no worker can advance (D-36)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.errors import BlobMissingError, ConflictError, RunReadOnlyError
from holdfast.store.rows import ClaimRequest, RunFilter, RunHistory
from holdfast.testing.conformance.kit import TTL
from holdfast.types.event import EventRow
from holdfast.types.ids import derived_id, new_run_id
from holdfast.types.record import Kind, NewTimer, Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import RunId

DATA = b"large"
DIGEST = sha256(DATA).digest()


async def parked(kit: StoreKit) -> RunId:
    """A parked run with all that a history has: records, answers, events, late evidence, a blob."""
    await kit.store.put_blob(DIGEST, len(DATA), DATA)
    lease = await kit.claimed(idempotency_key="once", thread="t-1")
    asked = await kit.asked(lease)
    await kit.decide(asked, event=kit.event("hold.resolved"))
    await kit.store.report_late(lease.run, 1, b"it was done")
    second = kit.new_hold(3, visit=2)
    side = Side(blobs=[DIGEST], timers=[NewTimer("later", kit.clock.now() + 1)], holds=[second])
    await kit.written(lease, kit.record(2, events=3), kit.record(3, kind=Kind.asked, side=side))
    row = await kit.row(lease.run)
    assert await kit.store.park(
        lease, status=RunStatus.pending_input, inbox_seen=row.inbox_seq, ready_at=None
    )
    return lease.run


async def moved(kit: StoreKit) -> RunHistory:
    """The history of such a run, which this store no longer has."""
    run = await parked(kit)
    history = await kit.store.history(run)
    assert history is not None
    assert await kit.store.delete_run(run)
    return history


@pytest.mark.anyio
@pytest.mark.covers("D-36")
class TransferSuite:
    async def test_history_is_whole(self, kit: StoreKit) -> None:
        run = await parked(kit)
        history = await kit.store.history(run)
        assert history is not None
        assert history.run == await kit.row(run)
        assert history.records == await kit.store.read(run)
        assert history.holds == await kit.store.holds(run=run)
        assert [h.status for h in history.holds] == [HoldStatus.resolved, HoldStatus.pending]
        assert [(e.number, e.type) for e in history.events] == [(3, "hold.resolved")]
        assert history.late == [(1, b"it was done")]
        assert history.blobs == [DIGEST]
        assert await kit.store.history(new_run_id()) is None

    async def test_adopted_run_is_read_as_it_was(self, kit: StoreKit) -> None:
        history = await moved(kit)
        row, fresh = await kit.store.adopt(history)
        run = row.id
        assert fresh
        assert row == msgspec.structs.replace(history.run, key=row.key, read_only=True)
        holds = [msgspec.structs.replace(hold, read_only=True) for hold in history.holds]
        assert await kit.store.history(run) == msgspec.structs.replace(history, run=row, holds=holds)
        result = await kit.store.events(run, after=0, limit=9)
        numbers = [e.number if isinstance(e, EventRow) else e.event_from for e in result]
        assert numbers == [1, 2, 3, 4, 7]
        assert [r.seq for r in await kit.store.checkpoint_records(run)] == [3, 2, 1, 0]
        assert await kit.store.last_snapshot(run, 3) == 0
        assert await kit.store.list_runs(RunFilter(thread="t-1"), after=None, limit=9) == [row]
        assert await kit.whole_feed() == [], "it did not happen here"

    @pytest.mark.covers("FLEET-WORK-11", "FLEET-OPS-01")
    async def test_deaths_are_transferred_but_are_not_dead_letters_here(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.taken_over(lease)
        kit.clock.advance(seconds=61)
        await kit.store.reclaim(limit=9, max_recoveries=1)
        history = await kit.store.history(lease.run)
        assert history is not None
        assert [death.worker for death in history.deaths] == ["worker-1", "worker-2"]
        assert (await kit.store.fleet_figures(ages=())).dead == 1
        assert await kit.store.delete_run(lease.run)
        row, _ = await kit.store.adopt(history)
        assert row.dead
        assert await kit.store.deaths(row.id) == history.deaths
        assert (await kit.store.fleet_figures(ages=())).dead == 0
        for dead, found in ((True, []), (False, [row]), (None, [row])):
            assert await kit.store.list_runs(RunFilter(dead=dead), after=None, limit=9) == found

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_adopted_run_is_no_live_one(self, kit: StoreKit) -> None:
        row, _ = await kit.store.adopt(await moved(kit))
        assert row.status is RunStatus.pending_input
        assert (await kit.store.fleet_figures(ages=())).statuses == {}

    async def test_adopted_run_is_the_same_when_adopted_twice(self, kit: StoreKit) -> None:
        history = await moved(kit)
        row, _ = await kit.store.adopt(history)
        other = msgspec.structs.replace(history, holds=[], late=[])
        assert await kit.store.adopt(other) == (row, False)
        assert len(await kit.store.holds(run=row.id)) == 2

    async def test_adopted_run_is_never_advanced(self, kit: StoreKit) -> None:
        history = await moved(kit)
        await kit.store.adopt(history)
        run, open_hold = history.run.id, history.holds[1].id
        before = await kit.store.history(run)
        kit.clock.advance(days=1)
        assert await kit.store.fire_timers(limit=9) == 0
        assert await kit.store.next_timer() is None
        assert await kit.store.pending(run) == (history.run.inbox_seq, [])
        for kind in ("resume", "cancel", "timer"):
            assert not await kit.store.send(run, kind, b"", event=kit.event())
        assert await kit.decide(open_hold, event=kit.event()) is None
        with pytest.raises(RunReadOnlyError):
            await kit.store.create(kit.new_run(supersedes=run))
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, limit=9)) == []
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=run)) == []
        assert await kit.store.reclaim(limit=9, max_recoveries=9) == []
        assert await kit.store.history(run) == before

    async def test_adopted_failed_run_is_not_revived(self, kit: StoreKit) -> None:
        history = await moved(kit)
        failed = msgspec.structs.replace(history.run, status=RunStatus.failed, error="boom", ended_at=5)
        row, _ = await kit.store.adopt(msgspec.structs.replace(history, run=failed))
        assert (row.status, row.error, row.ended_at) == (RunStatus.failed, "boom", 5)
        assert not await kit.store.send(row.id, "resume", b"")
        assert await kit.row(row.id) == row

    async def test_adopted_run_leaves_its_idempotency_key_to_others(self, kit: StoreKit) -> None:
        await kit.store.adopt(await moved(kit))
        await kit.created(idempotency_key="once")

    async def test_adopted_run_keeps_its_blobs_until_it_is_deleted(self, kit: StoreKit) -> None:
        row, _ = await kit.store.adopt(await moved(kit))
        kit.clock.advance(days=2)
        assert await kit.store.condemn_blobs(older_than=kit.clock.now(), limit=9) == []
        assert await kit.store.delete_run(row.id)
        assert await kit.store.condemn_blobs(older_than=kit.clock.now(), limit=9) == [DIGEST]
        assert await kit.store.hold((await moved(kit)).holds[0].id) is None

    async def test_pruned_run_is_adopted_from_its_horizon_on(self, kit: StoreKit) -> None:
        run = await parked(kit)
        assert await kit.store.prune(run, horizon=2, replace=kit.record(2, kind=Kind.snapshot, events=3)) == 2
        history = await kit.store.history(run)
        assert history is not None
        await kit.store.delete_run(run)
        row, _ = await kit.store.adopt(history)
        assert row.horizon == 2
        assert [(r.seq, r.event_from) for r in await kit.store.read(run)] == [(2, 4), (3, 7)]
        assert await kit.store.last_snapshot(run, 3) == 2

    async def test_nothing_is_adopted_when_a_blob_is_missing(self, kit: StoreKit) -> None:
        history = await moved(kit)
        with pytest.raises(BlobMissingError):
            await kit.store.adopt(msgspec.structs.replace(history, blobs=[DIGEST, b"\0" * 32]))
        assert await kit.store.history(history.run.id) is None

    async def test_nothing_is_adopted_when_a_hold_is_one_of_another_run(self, kit: StoreKit) -> None:
        history = await moved(kit)
        row, _ = await kit.store.adopt(history)
        other = msgspec.structs.replace(history.run, id=derived_id("another"))
        with pytest.raises(ConflictError):
            await kit.store.adopt(msgspec.structs.replace(history, run=other))
        assert await kit.store.history(other.id) is None
        assert [h.run for h in await kit.store.holds()] == [row.id] * 2

    async def test_one_of_many_adopts_when_all_try_at_once(self, kit: StoreKit) -> None:
        history = await moved(kit)
        won = await kit.race(4, lambda store, _: store.adopt(history))
        assert sorted(fresh for _, fresh in won) == [False, False, False, True]
        assert len({row.key for row, _ in won}) == 1
