"""Workers, and the backlog."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.schedules import row as schedule
from holdfast.types.clock import MICROS
from holdfast.types.concurrency_limits import LimitRow
from holdfast.types.fleet import ScheduledFlow, VersionBacklog, WorkerRow
from holdfast.types.outbox import OutboxMessage, OutboxState
from holdfast.types.record import NewTimer, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit

TTL = 30 * MICROS
AGES = (60 * MICROS, 3600 * MICROS)


def worker(name: str = "w", incarnation: str = "one", **given: object) -> WorkerRow:
    fields: dict[str, object] = {"host": "here", "pid": 7, "release": "1.0", "started_at": 5}
    return WorkerRow(name=name, incarnation=incarnation, **{**fields, **given})  # pyright: ignore[reportArgumentType]


@pytest.mark.anyio
class FleetSuite:
    # -- workers

    @pytest.mark.covers("FLEET-BAD-06")
    async def test_worker_is_informed_of_as_it_said(self, kit: StoreKit) -> None:
        registered = worker(
            lanes=("fast",), versions={"v1": "refund"}, concurrency=4, busy=2, hot=1, draining=True
        )
        assert await kit.store.put_worker(registered, TTL) is None
        (row,) = await kit.store.workers()
        assert (row.lanes, row.versions, row.concurrency) == (("fast",), {"v1": "refund"}, 4)
        assert (row.busy, row.hot, row.draining, row.host, row.pid) == (2, 1, True, "here", 7)
        assert (row.seen_at, row.until) == (kit.clock.now(), kit.clock.now() + TTL)

    async def test_worker_says_again_how_it_is(self, kit: StoreKit) -> None:
        for busy in (1, 2):
            kit.clock.advance(seconds=5)
            for _twice in range(2):
                assert await kit.store.put_worker(worker(busy=busy), TTL) is None
        (row,) = await kit.store.workers()
        assert (row.busy, row.seen_at) == (2, kit.clock.now())

    @pytest.mark.covers("FLEET-BAD-06")
    async def test_name_of_a_live_worker_is_not_given_twice(self, kit: StoreKit) -> None:
        await kit.store.put_worker(worker(busy=3), TTL)
        kit.clock.advance(seconds=29)
        holder = await kit.store.put_worker(worker(incarnation="two", pid=8), TTL)
        assert holder is not None
        assert (holder.incarnation, holder.pid, holder.until) == ("one", 7, kit.clock.now() + MICROS)
        (row,) = await kit.store.workers()
        assert (row.incarnation, row.busy) == ("one", 3)

    @pytest.mark.covers("FLEET-BAD-06")
    async def test_name_is_free_when_its_worker_has_fallen_silent(self, kit: StoreKit) -> None:
        await kit.store.put_worker(worker(), TTL)
        kit.clock.advance(seconds=30)
        assert await kit.store.put_worker(worker(incarnation="two"), TTL) is None
        holder = await kit.store.put_worker(worker(), TTL)
        assert holder is not None
        assert holder.incarnation == "two"

    async def test_silent_worker_gets_its_name_again_when_no_other_took_it(self, kit: StoreKit) -> None:
        await kit.store.put_worker(worker(), TTL)
        kit.clock.advance(hours=2)
        assert await kit.store.put_worker(worker(), TTL) is None

    async def test_worker_that_ends_takes_only_its_own_row(self, kit: StoreKit) -> None:
        await kit.store.put_worker(worker(), TTL)
        await kit.store.put_worker(worker("x"), TTL)
        await kit.store.drop_worker("w", "another")
        assert [row.name for row in await kit.store.workers()] == ["w", "x"]
        for _twice in range(2):
            await kit.store.drop_worker("w", "one")
        assert [row.name for row in await kit.store.workers()] == ["x"]
        assert await kit.store.put_worker(worker(incarnation="two"), TTL) is None

    async def test_silent_worker_is_remembered_for_a_day(self, kit: StoreKit) -> None:
        await kit.store.put_worker(worker(), TTL)
        kit.clock.advance(hours=23)
        await kit.store.put_worker(worker("x"), TTL)
        silent, alive = await kit.store.workers()
        assert silent.until < kit.clock.now() < alive.until
        kit.clock.advance(hours=2)
        await kit.store.put_worker(worker("x"), TTL)
        assert [row.name for row in await kit.store.workers()] == ["x"]

    @pytest.mark.covers("FLEET-BAD-06")
    async def test_one_of_many_gets_the_name(self, kit: StoreKit) -> None:
        async def announce(store: Store, number: int) -> WorkerRow | None:
            return await store.put_worker(worker(incarnation=str(number)), TTL)

        answers = await kit.race(4, announce)
        assert answers.count(None) == 1
        assert {row.incarnation for row in answers if row is not None} == {str(answers.index(None))}

    # -- the backlog

    async def test_nothing_to_do_is_reported_as_that(self, kit: StoreKit) -> None:
        result = await kit.store.fleet_figures(ages=AGES)
        assert (result.at, result.lanes, result.statuses, result.dead) == (kit.clock.now(), [], {}, 0)
        assert result.holds == [(AGES[0], 0), (AGES[1], 0), (0, 0)]
        assert (result.oldest_hold, result.timer_lag, result.hold_lag, result.schedule_lag) == (0, 0, 0, 0)
        assert (result.outbox_waiting, result.outbox_dead) == (0, 0)

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_lanes_are_reported_with_what_is_ready_and_what_runs(self, kit: StoreKit) -> None:
        await kit.created(lane="fast")
        kit.clock.advance(seconds=7)
        await kit.created(lane="fast")
        await kit.claimed(lane="slow")
        await kit.created(lane="later", ready_at=kit.clock.now() + MICROS)
        fast, slow = (await kit.store.fleet_figures(ages=AGES)).lanes
        assert (fast.lane, fast.ready, fast.oldest, fast.running) == ("fast", 2, 7 * MICROS, 0)
        assert (slow.lane, slow.ready, slow.oldest, slow.running) == ("slow", 0, 0, 1)

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_runs_behind_a_reached_limit_are_distinguished(self, kit: StoreKit) -> None:
        """Another worker would not help them."""
        limit = LimitRow(name="flow:refund", concurrency=3)
        for _ in range(6):
            await kit.created(lane="fast", limit=limit.name, limits=[limit])
        kit.clock.advance(seconds=7)
        await kit.created(lane="fast")
        each = LimitRow(name="flow:mail/*", rate=1, per=60 * MICROS)
        for key in "aab":
            await kit.created(
                lane="mail", limit=f"flow:mail/{key}", limits=[LimitRow(name="flow:mail"), each]
            )
        for limit, (ready, oldest, in_line) in ((2, (2, 7, 3)), (1, (1, 0, 3))):
            want = ClaimRequest(worker="w", ttl=TTL, limit=limit, lanes=("fast",))
            assert len(await kit.store.claim(want)) == limit
            fast, mail = (await kit.store.fleet_figures(ages=AGES)).lanes
            assert (fast.ready, fast.oldest, fast.in_line) == (ready, oldest * MICROS, in_line)
            assert (mail.ready, mail.in_line) == (2, 1)
        # As many as a worker claims that could claim more.
        assert len(await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, limit=9))) == 3

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_claim_returns_since_when_the_run_was_queued(self, kit: StoreKit) -> None:
        ready_at = kit.clock.now() + 3 * MICROS
        await kit.created(ready_at=ready_at)
        kit.clock.advance(seconds=8)
        (claim,) = await kit.store.claim(ClaimRequest(worker="w", ttl=TTL))
        assert (claim.since, claim.run.updated_at) == (ready_at, ready_at + 5 * MICROS)

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_only_live_runs_are_counted_by_status(self, kit: StoreKit) -> None:
        await kit.created()
        lease = await kit.claimed()
        await kit.asked(lease)
        await kit.store.park(lease, status=RunStatus.pending_input, inbox_seen=0, ready_at=None)
        over = await kit.claimed()
        await kit.written(over, kit.record(1, side=Side(status=RunStatus.completed)))
        result = await kit.store.fleet_figures(ages=AGES)
        assert result.statuses == {"pending": 1, "pending_input": 1}
        assert [(lane.ready, lane.running) for lane in result.lanes] == [(1, 0)]

    @pytest.mark.covers("SAFE-STORE-05")
    async def test_runs_whose_lease_expired_are_counted_as_they_are_shown(self, kit: StoreKit) -> None:
        await kit.claimed()
        idle = await kit.claimed()
        assert await kit.store.set_idle(idle, status=RunStatus.waiting)
        held = await kit.store.fleet_figures(ages=AGES)
        assert held.statuses == {"running": 1, "waiting": 1}
        # One that waits keeps its lease in the memory of a worker, and on an engine for as long as it waits.
        assert [lane.running for lane in held.lanes] == [1]
        kit.clock.advance(hours=1)
        await kit.claimed()
        lapsed = await kit.store.fleet_figures(ages=AGES)
        assert lapsed.statuses == {"running": 1, "resumable": 1, "waiting": 1}
        assert [lane.running for lane in lapsed.lanes] == [1]

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_holds_are_reported_by_age_and_only_while_they_are_open(self, kit: StoreKit) -> None:
        await kit.asked(await kit.claimed())
        kit.clock.advance(seconds=3600 - 60)
        await kit.asked(await kit.claimed())
        kit.clock.advance(seconds=60)
        await kit.asked(await kit.claimed())
        closed = await kit.asked(await kit.claimed())
        await kit.decide(closed)
        result = await kit.store.fleet_figures(ages=AGES)
        assert result.holds == [(AGES[0], 1), (AGES[1], 1), (0, 1)]
        assert result.oldest_hold == 3600 * MICROS

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_what_is_overdue_is_reported_by_how_long(self, kit: StoreKit) -> None:
        at = kit.clock.now() + 10 * MICROS
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(timers=[NewTimer("t", at)])))
        expiring = kit.new_hold(2, expires_at=at + MICROS, expiry_action="fail")
        await kit.asked(lease, expiring, seq=2)
        result = await kit.store.fleet_figures(ages=AGES)
        assert (result.timer_lag, result.hold_lag) == (0, 0)
        kit.clock.advance(seconds=13)
        result = await kit.store.fleet_figures(ages=AGES)
        assert (result.timer_lag, result.hold_lag) == (3 * MICROS, 2 * MICROS)

    @pytest.mark.covers("SAFE-FLEET-03")
    async def test_ready_runs_are_reported_by_lane_and_version(self, kit: StoreKit) -> None:
        await kit.created(lane="fast", flow="pay", version="g1-a")
        kit.clock.advance(seconds=7)
        await kit.created(lane="fast", flow="pay", version="g1-a", limit="flow:pay")
        await kit.created(lane="slow", flow="pay", version="g1-b")
        await kit.claimed(lane="slow", flow="pay", version="g1-c")
        await kit.created(lane="slow", flow="pay", version="g1-d", ready_at=kit.clock.now() + MICROS)
        found = (await kit.store.fleet_figures(ages=AGES)).versions
        assert found == [
            VersionBacklog(lane="fast", flow="pay", version="g1-a", ready=2, oldest=7 * MICROS),
            VersionBacklog(lane="slow", flow="pay", version="g1-b", ready=1, oldest=0),
        ]

    async def test_a_schedule_that_was_triggered_by_hand_is_not_late_since_1970(self, kit: StoreKit) -> None:
        await kit.store.put_schedule(schedule("triggered", next_at=0))
        assert (await kit.store.fleet_figures(ages=AGES)).schedule_lag == 0
        await kit.store.put_schedule(schedule("late", next_at=kit.clock.now() - 3))
        assert (await kit.store.fleet_figures(ages=AGES)).schedule_lag == 3

    @pytest.mark.covers("SAFE-FLEET-03")
    async def test_waits_suspects_and_schedules_are_counted(self, kit: StoreKit) -> None:
        lease, at = await kit.claimed(), kit.clock.now()
        assert (await kit.store.fleet_figures(ages=AGES)).next_timer is None
        timers = [NewTimer("a", at + 10 * MICROS), NewTimer("b", at + 20 * MICROS)]
        await kit.written(lease, kit.record(1, side=Side(timers=timers)))
        await kit.store.put_schedule(schedule("nightly", next_at=5))
        await kit.store.put_schedule(schedule("daily", next_at=3))
        await kit.store.put_schedule(schedule("paused"))
        result = await kit.store.fleet_figures(ages=AGES)
        assert (result.timers, result.next_timer, result.suspects) == (2, 10 * MICROS, 0)
        assert result.scheduled == [ScheduledFlow(flow="report", schedules=2, next_at=3)]
        for suspects in (0, 1):
            kit.clock.advance(seconds=61)
            await kit.store.reclaim(limit=9, max_recoveries=9)
            result = await kit.store.fleet_figures(ages=AGES)
            assert (result.next_timer, result.suspects) == (0, suspects)
            await kit.claim(lease.run)

    @pytest.mark.covers("FLEET-OPS-01")
    async def test_messages_that_wait_are_counted(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        messages = [OutboxMessage("t", key, b"{}") for key in ("a", "b")]
        await kit.written(lease, kit.record(1, side=Side(outbox=messages)))
        assert (await kit.store.fleet_figures(ages=AGES)).outbox_waiting == 2
        (taken, _) = await kit.store.claim_outbox(limit=2, lease=TTL)
        await kit.store.finish_outbox(taken.id, attempt=1, state=OutboxState.dead)
        result = await kit.store.fleet_figures(ages=AGES)
        assert (result.outbox_waiting, result.outbox_dead) == (1, 1)

    # -- rows of series

    @pytest.mark.covers("WB-45-rows")
    async def test_ended_runs_are_the_newest_of_their_tenant(self, kit: StoreKit) -> None:
        start = kit.clock.now()
        for status, tenant in (("completed", "acme"), ("failed", "acme"), ("completed", "other")):
            lease = await kit.claimed(tenant=tenant)
            kit.clock.advance(seconds=10)
            await kit.written(lease, kit.record(1, side=Side(status=RunStatus(status))))
        await kit.claimed(tenant="acme")
        found = await kit.store.ended_runs("acme", since=start, limit=10)
        assert sorted((row.at - start, row.status) for row in found.rows) == [
            (10 * MICROS, "completed"), (20 * MICROS, "failed"),
        ]  # fmt: skip
        assert found.since is None
        later = await kit.store.ended_runs("acme", since=start + 15 * MICROS, limit=10)
        assert [row.status for row in later.rows] == ["failed"]
        # The cost is bounded, and a newer run of another tenant takes no place.
        both = await kit.store.ended_runs("acme", since=start, limit=2)
        assert sorted(row.status for row in both.rows) == ["completed", "failed"]
        few = await kit.store.ended_runs("acme", since=start, limit=1)
        assert [row.status for row in few.rows] == ["failed"]
        assert few.since == start + 20 * MICROS

    @pytest.mark.covers("WB-45-rows")
    async def test_times_of_holds_are_the_newest_of_their_tenant(self, kit: StoreKit) -> None:
        start = kit.clock.now()
        terms = {"expires_at": start + 60 * MICROS, "original_timeout": 60 * MICROS}
        first = await kit.asked(await kit.claimed(tenant="acme"), kit.new_hold(**terms))
        kit.clock.advance(seconds=10)
        await kit.decide(first, by="user:ada")
        await kit.asked(await kit.claimed(tenant="acme"))
        await kit.asked(await kit.claimed(tenant="acme"), kit.new_hold(type="debug_breakpoint"))
        await kit.asked(await kit.claimed(tenant="other"))
        found = await kit.store.hold_times("acme", since=start, limit=10)
        decided, opened = sorted(found.rows, key=lambda row: row.created_at)
        assert (decided.status, decided.created_at, decided.ended_at) == ("resolved", start, kit.clock.now())
        assert (decided.ended_by, decided.expires_at) == ("user:ada", start + 60 * MICROS)
        assert (decided.original_timeout, decided.escalations) == (60 * MICROS, 0)
        assert (opened.status, opened.ended_at, opened.ended_by) == ("pending", None, None)
        assert found.since is None
        later = await kit.store.hold_times("acme", since=kit.clock.now() + 1, limit=10)
        assert [row.status for row in later.rows] == ["pending"]
        few = await kit.store.hold_times("acme", since=start, limit=1)
        assert few.since == kit.clock.now()
