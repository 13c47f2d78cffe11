"""Runs whose worker was lost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.store.rows import ClaimRequest, RunFilter
from holdfast.testing.conformance import limits, outbox, queues
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.leases import park
from holdfast.types.clock import MICROS
from holdfast.types.event import EventRow
from holdfast.types.fleet import Death
from holdfast.types.ids import new_run_id
from holdfast.types.record import Kind, Refusal, Side
from holdfast.types.status import HoldStatus, RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.store.rows import RunRow
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
        rows = [await kit.created() for _ in range(4)]
        runs = [(await kit.claim(row.id, f"worker-{nth}")).lease.run for nth, row in enumerate(rows)]
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

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_each_death_is_kept_with_its_evidence(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, kind=Kind.intent))
        kit.clock.advance(seconds=61)
        first = kit.clock.now()
        (row,) = await reclaim(kit, max_recoveries=1)
        assert (row.recoveries, row.dead) == (1, False)
        await kit.claim(lease.run, "worker-2")
        kit.clock.advance(seconds=62)
        (row,) = await reclaim(kit, max_recoveries=1)
        assert (row.status, row.recoveries, row.dead) == (RunStatus.failed, 2, True)
        assert row.error is not None
        assert "worker-1" in row.error
        assert "worker-2" in row.error
        until = first + 60 * MICROS
        assert await kit.store.deaths(lease.run) == [
            Death(
                term=1, worker="worker-1", at=first, lease_until=first - MICROS, head=1, status="running"
            ),
            Death(
                term=3, worker="worker-2", at=kit.clock.now(), lease_until=until, head=1, status="running"
            ),
        ]  # fmt: skip
        assert await kit.store.deaths(new_run_id()) == []

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_each_death_is_reported_on_the_runs_stream(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=61)
        await reclaim(kit, max_recoveries=1)
        await kit.claim(lease.run, "worker-2")
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit, max_recoveries=1)
        lines = [e for e in await kit.store.events(lease.run, after=0, limit=9) if isinstance(e, EventRow)]
        assert [event.type for event in lines] == ["run.recovered", "run.given_up"]
        assert [event.number for event in lines] == [row.event_seq - 1, row.event_seq]
        data = [msgspec.json.decode(event.payload) for event in lines]
        assert [(d["worker"], d["term"], d["recoveries"]) for d in data] == [
            ("worker-1", 1, 1),
            ("worker-2", 3, 2),
        ]
        assert [run for _, run, _, last in await kit.whole_feed() if last == row.event_seq]

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_dead_run_is_claimed_only_by_the_caller_who_ends_it(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        want = ClaimRequest(worker="operator", ttl=TTL, run=lease.run)
        assert await kit.store.claim_dead(want) is None, "it lives"
        hold = await kit.asked(lease)
        kit.clock.advance(seconds=61)
        await reclaim(kit, max_recoveries=0)
        claim = await kit.store.claim_dead(want, event=kit.event("run.cancel_requested"))
        assert claim is not None
        assert (claim.run.status, claim.run.dead, claim.run.worker) == (RunStatus.running, False, "operator")
        assert (claim.run.recoveries, claim.run.error, claim.run.ended_at) == (0, None, None)
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        assert await kit.store.claim_dead(want) is None, "twice"
        side = Side(status=RunStatus.cancelled, close_all_holds="over")
        await kit.written(claim.lease, kit.record(2, kind=Kind.end, term=claim.lease.term, side=side))
        assert (await kit.row(lease.run)).status is RunStatus.cancelled
        assert (await kit.hold(hold)).status is HoldStatus.cancelled
        lines = [e for e in await kit.store.events(lease.run, after=0, limit=9) if isinstance(e, EventRow)]
        assert [event.type for event in lines] == ["run.given_up", "run.cancel_requested"]
        assert await kit.store.claim_dead(want) is None, "it has ended"
        assert await kit.store.claim_dead(ClaimRequest(worker="w", ttl=TTL, run=new_run_id())) is None

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_recoveries_count_anew_when_something_got_done_between(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        for seq, kind, count in (
            (1, Kind.step, 1),
            (2, Kind.intent, 2),
            (3, Kind.attempt, 3),
            (4, Kind.step, 1),
            (5, Kind.substep, 1),
        ):
            await kit.written(lease, kit.record(seq, kind=kind, term=lease.term))
            kit.clock.advance(seconds=61)
            (row,) = await reclaim(kit)
            assert row.recoveries == count
            lease = (await kit.claim(lease.run)).lease
        assert len(await kit.store.deaths(lease.run)) == 5

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_second_recovery_in_a_row_waits_and_each_further_one_twice_as_long(
        self, kit: StoreKit
    ) -> None:
        lease = await kit.claimed()
        for factor in (0, 1, 2, 4):
            kit.clock.advance(seconds=61)
            (row,) = await kit.store.reclaim(limit=9, max_recoveries=9, backoff=TTL)
            assert row.ready_at == kit.clock.now() + factor * TTL
            if factor:
                kit.clock.advance(seconds=60 * factor - 1)
                assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, suspects=True)) == []
                kit.clock.advance(seconds=1)
            (taken,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, suspects=factor > 0))
            assert taken.lease.run == lease.run

    @pytest.mark.covers("SAFE-STORE-03")
    async def test_leases_that_end_late_are_found_and_ended_unless_they_changed(self, kit: StoreKit) -> None:
        first, second = await kit.claimed(), await kit.claimed()
        assert await kit.store.leases_ahead(TTL, limit=9) == []
        kit.clock.set_by(timedelta(hours=-1))
        ahead = await kit.store.leases_ahead(TTL, limit=9)
        assert {row.id for row in ahead} == {first.run, second.run}
        assert len(await kit.store.leases_ahead(TTL, limit=1)) == 1
        assert await kit.store.leases_ahead(TTL + 3600 * MICROS, limit=9) == []
        await kit.store.extend([second], TTL)
        assert await kit.store.expire_leases(ahead) == 1
        assert await kit.store.expire_leases(ahead) == 0
        assert [row.id for row in await reclaim(kit)] == [first.run]
        assert await kit.store.extend([second], TTL) == [True]

    @pytest.mark.covers("SAFE-STORE-03")
    async def test_ready_times_are_corrected_by_as_much_as_the_clock_was_set_back(
        self, kit: StoreKit
    ) -> None:
        now, later = await kit.created(), await kit.created(ready_at=kit.clock.now() + 90 * MICROS)
        assert await kit.store.correct_ready_times() == 0
        kit.clock.set_by(timedelta(hours=-1))
        assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL)) == []
        assert await kit.store.correct_ready_times() == 2
        assert await kit.store.correct_ready_times() == 0
        (claim,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, limit=9))
        assert claim.run.id == now.id
        assert (await kit.row(later.id)).ready_at == kit.clock.now() + 90 * MICROS

    @pytest.mark.covers("SAFE-STORE-03")
    async def test_messages_of_queues_wait_no_longer_when_the_clock_was_set_back(self, kit: StoreKit) -> None:
        for name, delay in (("left", 0), ("now", 0), ("later", 90)):
            await queues.published(kit, name, visible_at=kit.clock.now() + delay * MICROS)
        left = await queues.claimed(kit, id="left")
        kit.clock.set_by(timedelta(hours=-1))
        assert await kit.store.claim_messages(queues.wanted(limit=9)) == []
        assert await kit.store.correct_ready_times() == 3
        assert await kit.store.correct_ready_times() == 0
        assert [row.id for row in await kit.store.claim_messages(queues.wanted(limit=9))] == ["now"]
        row = await kit.store.queue_message("default", left.id)
        assert row is not None
        assert row.claim_until == kit.clock.now() + ((left.claim_until or 0) - left.updated_at)
        kit.clock.advance(seconds=90)
        assert [row.id for row in await kit.store.claim_messages(queues.wanted(limit=9))] == ["later"]

    @pytest.mark.covers("SAFE-STORE-03")
    async def test_messages_of_the_outbox_wait_no_longer_when_the_clock_was_set_back(
        self, kit: StoreKit
    ) -> None:
        later = outbox.message("later", due_at=kit.clock.now() + 90 * MICROS)
        await outbox.run_with_messages(kit, outbox.message("left"), outbox.message("now"), later)
        assert [row.key for row in await outbox.claim(kit, limit=1)] == ["left"]
        kit.clock.set_by(timedelta(hours=-1))
        assert await outbox.claim(kit) == []
        assert await kit.store.correct_ready_times() == 3
        assert await kit.store.correct_ready_times() == 0
        assert [row.key for row in await outbox.claim(kit)] == ["now"]
        kit.clock.advance(seconds=outbox.LEASE / MICROS)
        assert [row.key for row in await outbox.claim(kit)] == ["left", "now"]
        kit.clock.advance(seconds=80)
        assert "later" in [row.key for row in await outbox.claim(kit)]

    @pytest.mark.covers("SAFE-STORE-03")
    async def test_starts_before_the_clock_was_set_back_close_no_rate(self, kit: StoreKit) -> None:
        first, second = [await limits.queued_run(kit, limits.declared(rate=1)) for _ in range(2)]
        assert await limits.ids(kit.store) == [first.id]
        kit.clock.set_by(timedelta(hours=-1))
        await kit.store.correct_ready_times()
        assert await limits.ids(kit.store) == [second.id]
        third = await limits.queued_run(kit)
        assert await limits.ids(kit.store) == []
        kit.clock.advance(seconds=60)
        assert third.id in await limits.ids(kit.store)

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_dead_runs_are_listed_until_a_resume_is_requested(self, kit: StoreKit) -> None:
        alive, doomed = await kit.created(), await kit.claimed()
        kit.clock.advance(seconds=61)
        await reclaim(kit, max_recoveries=0)

        async def listed(dead: bool) -> list[str]:
            return [r.id for r in await kit.store.list_runs(RunFilter(dead=dead), after=None, limit=9)]

        assert (await listed(True), await listed(False)) == ([doomed.run], [alive.id])
        assert await kit.store.send(doomed.run, "resume", b"") is True
        row = await kit.row(doomed.run)
        assert (row.status, row.dead, row.recoveries, row.error) == (RunStatus.resumable, False, 0, None)
        assert await listed(True) == []
        assert len(await kit.store.deaths(doomed.run)) == 1

    @pytest.mark.covers("FLEET-WORK-11")
    async def test_dead_run_may_be_asked_to_stop_and_one_that_failed_otherwise_may_not(
        self, kit: StoreKit
    ) -> None:
        doomed, failed = await kit.claimed(), await kit.claimed()
        await kit.written(failed, kit.record(1, kind=Kind.end, side=Side(status=RunStatus.failed)))
        assert await kit.store.send(failed.run, "cancel", b"") is False
        kit.clock.advance(seconds=61)
        await reclaim(kit, max_recoveries=0)
        assert await kit.store.send(doomed.run, "cancel", b"", dedupe="cancel") is True
        row = await kit.row(doomed.run)
        assert (row.status, row.dead) == (RunStatus.resumable, False)
        assert [mail.kind for mail in (await kit.store.pending(doomed.run))[1]] == ["cancel"]

    async def test_deaths_go_with_their_run(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        kit.clock.advance(seconds=61)
        await reclaim(kit)
        assert await kit.store.delete_run(lease.run)
        assert await kit.store.deaths(lease.run) == []

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
        assert await kit.store.set_idle(lease, status=RunStatus.pending_input)
        kit.clock.advance(seconds=61)
        (row,) = await reclaim(kit, max_recoveries=0)
        assert (row.status, row.recoveries, row.worker) == (RunStatus.pending_input, 0, None)
        assert await kit.store.deaths(lease.run) == []
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
