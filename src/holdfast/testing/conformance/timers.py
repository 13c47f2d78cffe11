"""Timers: fired once, by the first caller; closed ones never."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.testing.conformance.leases import park
from holdfast.types.record import NewTimer, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease


async def armed(kit: StoreKit, *tokens: str, seconds: int = 60) -> Lease:
    lease = await kit.claimed()
    at = kit.clock.now() + seconds * 1_000_000
    await kit.written(lease, kit.record(1, side=Side(timers=[NewTimer(token, at) for token in tokens])))
    return lease


@pytest.mark.anyio
class TimerSuite:
    @pytest.mark.covers("SAFE-READ-09")
    async def test_wake_time_of_a_run_is_its_earliest_timer(self, kit: StoreKit) -> None:
        early, late = await armed(kit, "a", seconds=5), await armed(kit, "b", "c", seconds=60)
        without = await kit.claimed()
        more = [NewTimer("d", kit.clock.now() + 7_000_000), NewTimer("e", kit.clock.now() + 90_000_000)]
        await kit.written(late, kit.record(2, side=Side(timers=more)))
        found = await kit.store.wake_times([early.run, late.run, without.run])
        assert found == {
            early.run: kit.clock.now() + 5_000_000,
            late.run: kit.clock.now() + 7_000_000,
        }
        assert await kit.store.wake_times([]) == {}

    @pytest.mark.covers("D-30")
    async def test_due_timer_becomes_a_message_and_is_gone(self, kit: StoreKit) -> None:
        lease = await armed(kit, "wait/ü/1")
        assert await kit.store.next_timer() == kit.clock.now() + 60_000_000
        kit.clock.advance(seconds=59)
        assert await kit.store.fire_timers(limit=9) == 0
        kit.clock.advance(seconds=1)
        assert await kit.store.fire_timers(limit=9) == 1
        assert await kit.store.fire_timers(limit=9) == 0
        seen, (row,) = await kit.store.pending(lease.run)
        assert (seen, row.kind, row.payload) == (1, "timer", "wait/ü/1".encode())
        assert await kit.store.next_timer() is None

    @pytest.mark.covers("D-30", "D-29")
    async def test_timer_wakes_its_parked_run(self, kit: StoreKit) -> None:
        lease = await armed(kit, "t")
        assert await park(kit.store, lease)
        kit.clock.advance(seconds=60)
        assert await kit.store.fire_timers(limit=9) == 1
        row = await kit.row(lease.run)
        assert (row.status, row.ready_at, row.inbox_seq) == (RunStatus.waiting, kit.clock.now(), 1)

    @pytest.mark.covers("D-30")
    async def test_each_timer_fires_once_when_sweepers_race(self, kit: StoreKit) -> None:
        lease = await armed(kit, *(f"t{number}" for number in range(10)), seconds=0)

        async def sweep(store: Store, _number: int) -> int:
            fired = 0
            while count := await store.fire_timers(limit=3):
                fired += count
            return fired

        # A sweep leaves out a run that another one has locked, so all may end before the last timer.
        fired = sum(await kit.race(3, sweep))
        assert fired + await sweep(kit.store, 0) == 10
        _, rows = await kit.store.pending(lease.run)
        assert sorted(row.payload for row in rows) == [b"t%d" % number for number in range(10)]

    @pytest.mark.covers("D-30")
    async def test_closed_timer_never_fires(self, kit: StoreKit) -> None:
        lease = await armed(kit, "a", "b")
        await kit.written(lease, kit.record(2, side=Side(close_timers=["a", "unknown"])))
        kit.clock.advance(hours=1)
        assert await kit.store.fire_timers(limit=9) == 1
        _, (row,) = await kit.store.pending(lease.run)
        assert row.payload == b"b"

    @pytest.mark.covers("D-5", "D-30")
    async def test_first_moment_stands_when_a_timer_is_armed_again(self, kit: StoreKit) -> None:
        lease = await armed(kit, "t")
        first = await kit.store.next_timer()
        later = NewTimer("t", kit.clock.now() + 10**9)
        await kit.written(lease, kit.record(2, side=Side(timers=[later])))
        assert await kit.store.next_timer() == first

    async def test_timers_of_one_run_do_not_touch_anothers_with_the_same_token(self, kit: StoreKit) -> None:
        one, other = await armed(kit, "t"), await armed(kit, "t")
        await kit.written(one, kit.record(2, side=Side(close_all_timers=True)))
        kit.clock.advance(seconds=60)
        assert await kit.store.fire_timers(limit=9) == 1
        assert (await kit.store.pending(one.run))[1] == []
        assert len((await kit.store.pending(other.run))[1]) == 1

    async def test_sweep_of_one_run_leaves_the_others(self, kit: StoreKit) -> None:
        one, other = await armed(kit, "t", seconds=0), await armed(kit, "t", seconds=0)
        assert await kit.store.fire_timers(limit=9, run=one.run) == 1
        assert await kit.store.fire_timers(limit=9, run=one.run) == 0
        assert (await kit.store.pending(other.run))[1] == []

    async def test_sweep_obeys_its_limit_earliest_first(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        now = kit.clock.now()
        timers = [NewTimer("late", now - 1), NewTimer("early", now - 9), NewTimer("middle", now - 5)]
        await kit.written(lease, kit.record(1, side=Side(timers=timers)))
        assert await kit.store.next_timer() == now - 9
        assert await kit.store.fire_timers(limit=2) == 2
        _, rows = await kit.store.pending(lease.run)
        assert [row.payload for row in rows] == [b"early", b"middle"]
