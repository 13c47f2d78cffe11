"""Limits: never more concurrent runs than a limit allows, never more starts per span than a rate allows."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.types.clock import MICROS
from holdfast.types.concurrency_limits import LimitRow, flow_limit, key_limit
from holdfast.types.record import Park, RunBatch, Side
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.store.protocols import Store
    from holdfast.store.rows import Claim, RunRow
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import RunId
    from holdfast.types.lease import Lease

FLOW = "flow:refund"
MINUTE = 60 * MICROS


def declared(concurrency: int | None = None, rate: int | None = None, name: str = FLOW) -> LimitRow:
    return LimitRow(name=name, concurrency=concurrency, rate=rate, per=MINUTE if rate else 0)


async def queued_run(kit: StoreKit, *limits: LimitRow, key: str | None = None, **given: Any) -> RunRow:
    """A run that waits for the flow's limit, or for that of its key."""
    limit = FLOW if key is None else key_limit("refund", key)
    return await kit.created(limit=limit, limits=list(limits), **given)


async def claim(store: Store, limit: int = 9, worker: str = "w") -> list[Claim]:
    return await store.claim(ClaimRequest(worker=worker, ttl=TTL, limit=limit))


async def ids(store: Store, limit: int = 9) -> list[RunId]:
    return [taken.run.id for taken in await claim(store, limit)]


async def named(store: Store, run: RunId) -> list[Claim]:
    return await store.claim(ClaimRequest(worker="w", ttl=TTL, run=run))


async def ended(kit: StoreKit, lease: Lease, store: Store | None = None) -> None:
    done = kit.record(1, term=lease.term, side=Side(status=RunStatus.completed))
    (answer,) = await (store or kit.store).settle([RunBatch(lease, [done])])
    assert answer.refusal is None


@pytest.mark.anyio
class LimitSuite:
    """Concurrency limits."""

    async def test_no_more_runs_are_claimed_than_the_gate_lets_pass(self, kit: StoreKit) -> None:
        rows = [await queued_run(kit, declared(2)) for _ in range(4)]
        first = await claim(kit.store)
        assert [taken.run.id for taken in first] == [row.id for row in rows[:2]]
        assert first[0].run.limit == FLOW
        assert await ids(kit.store) == []
        await ended(kit, first[0].lease)
        assert await ids(kit.store) == [rows[2].id]
        assert await ids(kit.store) == []

    async def test_named_run_waits_in_line_like_any_other(self, kit: StoreKit) -> None:
        first, second = [await queued_run(kit, declared(1)) for _ in range(2)]
        (taken,) = await named(kit.store, first.id)
        assert await named(kit.store, second.id) == []
        assert (await kit.row(second.id)).status is RunStatus.pending
        await ended(kit, taken.lease)
        assert len(await named(kit.store, second.id)) == 1

    async def test_run_that_finds_no_room_is_created_unclaimed(self, kit: StoreKit) -> None:
        until = kit.clock.now() + TTL
        held = await queued_run(kit, declared(1), claimed_by="w", lease_until=until)
        assert (held.status, held.worker, held.term) == (RunStatus.running, "w", 1)
        row = await queued_run(kit, declared(1), claimed_by="w", lease_until=until)
        assert (row.status, row.worker, row.term, row.lease_until) == (RunStatus.pending, None, 0, None)
        assert row.ready_at == kit.clock.now()
        assert row == await kit.row(row.id)

    async def test_run_created_twice_has_one_place(self, kit: StoreKit) -> None:
        until = kit.clock.now() + TTL
        new = kit.new_run(limit=FLOW, limits=[declared(2, 2)], claimed_by="w", lease_until=until)
        assert (await kit.store.create(new))[1]
        again, fresh = await kit.store.create(new)
        assert (again.status, fresh) == (RunStatus.running, False)
        row = await queued_run(kit, claimed_by="w", lease_until=until)
        assert row.status is RunStatus.running

    async def test_each_key_has_a_gate_of_its_own_inside_the_flows(self, kit: StoreKit) -> None:
        limits = (declared(3), declared(1, name=f"{FLOW}/*"))
        a, _, b, c, d = [await queued_run(kit, *limits, key=key) for key in "aabcd"]
        assert await ids(kit.store) == [a.id, b.id, c.id]
        assert d.id not in await ids(kit.store)
        assert (await kit.store.limits(prefix=FLOW))[0][1:] == (3, 2)

    async def test_key_with_a_gate_of_its_own_obeys_that(self, kit: StoreKit) -> None:
        await kit.store.put_limit(LimitRow(name=key_limit("refund", "big"), concurrency=3, fixed=True))
        each = declared(1, name=f"{FLOW}/*")
        for key in ("big",) * 4 + ("small",) * 2:
            await queued_run(kit, declared(), each, key=key)
        taken = Counter(one.run.limit for one in await claim(kit.store))
        assert taken == {f"{FLOW}/big": 3, f"{FLOW}/small": 1}

    async def test_keys_are_distinguished_whatever_they_contain(self, kit: StoreKit) -> None:
        keys = ["a", "a/b", "a%2Fb", "*", "", "ä", "x" * 5000]
        assert len({key_limit("refund", key) for key in keys}) == len(keys)
        each = declared(1, name=f"{FLOW}/*")
        rows = [await queued_run(kit, declared(), each, key=key) for key in keys for _ in range(2)]
        assert sorted(await ids(kit.store, 99)) == sorted(row.id for row in rows[::2])
        # A flow whose name begins as another's has its own runs only.
        assert flow_limit("refund/acme") != key_limit("refund", "acme")

    async def test_lapsed_lease_keeps_its_place_until_it_is_reclaimed(self, kit: StoreKit) -> None:
        first, second = [await queued_run(kit, declared(1)) for _ in range(2)]
        await named(kit.store, first.id)
        kit.clock.advance(seconds=61)
        assert await ids(kit.store) == []
        # It already has its place: the worker that takes it over needs no other.
        assert [one.run.id for one in await named(kit.store, first.id)] == [first.id]
        kit.clock.advance(seconds=61)
        await kit.store.reclaim(limit=9, max_recoveries=9)
        assert len(await ids(kit.store)) == 1
        assert second.limit == FLOW

    async def test_parked_run_gives_its_place_back_and_stands_in_line_again(self, kit: StoreKit) -> None:
        first, second = [await queued_run(kit, declared(1)) for _ in range(2)]
        (taken,) = await named(kit.store, first.id)
        assert await kit.store.park(
            taken.lease, status=RunStatus.waiting, inbox_seen=0, ready_at=kit.clock.now()
        )
        assert len(await named(kit.store, second.id)) == 1
        assert await ids(kit.store) == []
        assert await named(kit.store, first.id) == []

    async def test_reached_limit_is_in_nobodys_way(self, kit: StoreKit) -> None:
        """Whatever the priority of those that wait for it."""
        for _ in range(30):
            await queued_run(kit, declared(1), priority=9)
        await claim(kit.store, 1)
        other = await kit.created(flow="other")
        another = await kit.created(
            flow="third", limit=flow_limit("third"), limits=[declared(5, name="flow:third")]
        )
        assert sorted(await ids(kit.store)) == sorted([other.id, another.id])

    async def test_priority_and_fairness_hold_across_gates(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        low = await kit.created(flow="other", ready_at=now - 9)
        urgent = await queued_run(kit, declared(9), priority=5)
        big = [await queued_run(kit, tenant="big", ready_at=now - 50 + n) for n in range(3)]
        small = await kit.created(flow="other", tenant="small", ready_at=now)
        order = await ids(kit.store, 4)
        assert order[0] == urgent.id
        assert set(order[1:]) == {low.id, big[0].id, small.id}

    async def test_hog_behind_its_own_gate_does_not_hide_others(self, kit: StoreKit) -> None:
        each = declared(1, name=f"{FLOW}/*")
        now = kit.clock.now()
        for n in range(40):
            await queued_run(kit, declared(), each, key="hog", ready_at=now - 100 + n)
        others = [(await queued_run(kit, declared(), each, key=f"k{n}", ready_at=now)).id for n in range(3)]
        taken = await ids(kit.store, 4) + await ids(kit.store, 4)
        assert set(others) < set(taken)
        assert len(taken) == 4

    async def test_who_is_asked_to_stop_waits_in_no_line(self, kit: StoreKit) -> None:
        first, second = [await queued_run(kit, declared(1)) for _ in range(2)]
        await named(kit.store, first.id)
        assert await kit.store.send(second.id, "cancel", b"{}")
        assert await ids(kit.store) == [second.id]
        # A running run is checked too, and keeps its place.
        assert await kit.store.send(first.id, "cancel", b"{}")
        assert (await kit.row(first.id)).limit == FLOW

    async def test_limit_is_kept_when_claimers_race(self, kit: StoreKit) -> None:
        each = declared(1, name=f"{FLOW}/*")
        for n in range(24):
            await queued_run(kit, declared(3), each, key=str(n % 4))
        lock = threading.Lock()
        inside: Counter[str] = Counter()
        most: Counter[str] = Counter()

        def count(taken: list[Claim], by: int) -> None:
            with lock:
                for name in [name for one in taken for name in (FLOW, one.run.limit)]:
                    inside[name] += by
                    most[name] = max(most[name], inside[name])

        async def contend(store: Store, number: int) -> int:
            done = 0
            while (await store.limits(prefix=FLOW))[0][2]:
                taken = await claim(store, 2, f"w{number}")
                count(taken, 1)
                await asyncio.sleep(0.002)
                # Before the store hears of it: it can only look emptier than it is.
                count(taken, -1)
                for one in taken:
                    await ended(kit, one.lease, store)
                done += len(taken)
            return done

        assert sum(await kit.race(4, contend)) == 24
        assert most[FLOW] <= 3
        assert max(count for name, count in most.items() if name != FLOW) == 1

    async def test_named_claims_and_new_runs_race_for_one_place(self, kit: StoreKit) -> None:
        rows = [await queued_run(kit, declared(2)) for _ in range(3)]

        async def contend(store: Store, number: int) -> int:
            if number < 3:
                return len(await named(store, rows[number].id))
            until = kit.clock.now() + TTL
            new = kit.new_run(limit=FLOW, limits=[declared(2)], claimed_by="w", lease_until=until)
            row, _ = await store.create(new)
            return int(row.worker is not None)

        assert sum(await kit.race(6, contend)) == 2

    async def test_place_that_comes_free_wakes_who_waits(self, kit: StoreKit) -> None:
        first, second, third = [await queued_run(kit, declared(1)) for _ in range(3)]
        (taken,) = await named(kit.store, first.id)
        assert await ids(kit.store) == []
        await kit.store.wait_change(0.05)
        assert await ids(kit.store) == []
        waiting = asyncio.create_task(kit.store.wait_change(20))
        await asyncio.sleep(0.05)
        await ended(kit, taken.lease)
        assert await asyncio.wait_for(waiting, 5)
        # Also one that is given back with what was written last.
        (taken,) = await named(kit.store, second.id)
        assert await ids(kit.store) == []
        waiting = asyncio.create_task(kit.store.wait_change(20))
        await asyncio.sleep(0.05)
        record = kit.record(1, term=taken.lease.term)
        await kit.store.settle([RunBatch(taken.lease, [record], Park(RunStatus.waiting, 0, None))])
        assert await asyncio.wait_for(waiting, 5)
        assert await ids(kit.store) == [third.id]


@pytest.mark.anyio
class RateSuite:
    """Rate limits."""

    async def test_no_more_runs_start_in_any_span_than_the_rate_says(self, kit: StoreKit) -> None:
        for _ in range(6):
            await queued_run(kit, declared(rate=2))
        assert len(await ids(kit.store, 1)) == 1
        kit.clock.advance(seconds=30)
        assert len(await ids(kit.store)) == 1
        kit.clock.advance(seconds=29)
        assert await ids(kit.store) == []
        kit.clock.advance(seconds=1)
        # The first start is a minute ago; the second is still counted.
        assert len(await ids(kit.store)) == 1
        kit.clock.advance(seconds=60)
        assert len(await ids(kit.store)) == 2

    async def test_run_that_goes_on_is_no_start(self, kit: StoreKit) -> None:
        row = await queued_run(kit, declared(rate=1))
        await queued_run(kit)
        (taken,) = await named(kit.store, row.id)
        now = kit.clock.now()
        assert await kit.store.park(taken.lease, status=RunStatus.waiting, inbox_seen=0, ready_at=now)
        assert await ids(kit.store) == [row.id]
        assert await ids(kit.store) == []

    async def test_each_key_has_a_rate_of_its_own(self, kit: StoreKit) -> None:
        limits = (declared(rate=3), declared(rate=1, name=f"{FLOW}/*"))
        a, _, b, *_ = [await queued_run(kit, *limits, key=key) for key in "aabcd"]
        assert (await ids(kit.store, 2))[:2] == [a.id, b.id]
        assert len(await ids(kit.store)) == 1
        assert await ids(kit.store) == []
        kit.clock.advance(seconds=60)
        assert len(await ids(kit.store)) == 2

    async def test_created_and_named_runs_are_starts_too(self, kit: StoreKit) -> None:
        until = kit.clock.now() + TTL
        assert (await queued_run(kit, declared(rate=2), claimed_by="w", lease_until=until)).worker == "w"
        row = await queued_run(kit)
        assert len(await named(kit.store, row.id)) == 1
        last = await queued_run(kit, claimed_by="w", lease_until=until)
        assert last.worker is None
        assert await named(kit.store, last.id) == []
        kit.clock.advance(seconds=60)
        assert len(await named(kit.store, last.id)) == 1

    async def test_rate_is_kept_when_claimers_race(self, kit: StoreKit) -> None:
        for _ in range(12):
            await queued_run(kit, declared(rate=5))

        async def contend(store: Store, number: int) -> int:
            return sum([len(await claim(store, 2, f"w{number}")) for _ in range(4)])

        assert sum(await kit.race(4, contend)) == 5

    async def test_waiting_ends_when_the_rate_lets_the_next_one_start(self, kit: StoreKit) -> None:
        limit = LimitRow(name=FLOW, rate=1, per=300_000)
        for _ in range(2):
            await queued_run(kit, limit)
        assert len(await ids(kit.store)) == 1
        assert await ids(kit.store) == []
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.wait_for(kit.store.wait_change(20), 10)
        assert loop.time() - began < 5
        kit.clock.advance(seconds=0.3)
        assert len(await ids(kit.store)) == 1


@pytest.mark.anyio
class LimitChangeSuite:
    """Limits that flows declare, and limits that operators set."""

    async def test_what_an_operator_fixed_counts_until_it_is_dropped(self, kit: StoreKit) -> None:
        for _ in range(9):
            await queued_run(kit, declared(4))
        fixed = await kit.store.put_limit(LimitRow(name=FLOW, concurrency=1, fixed=True))
        assert fixed.updated_at == kit.clock.now()
        await queued_run(kit, declared(4))
        assert [limit for limit, _, _ in await kit.store.limits()] == [fixed]
        assert len(await ids(kit.store)) == 1
        assert await kit.store.drop_limit(FLOW)
        assert not await kit.store.drop_limit(FLOW)
        assert (await kit.store.limits())[0][0].concurrency == 4
        assert len(await ids(kit.store)) == 3
        assert await kit.store.drop_limit(FLOW, fixed=False)
        assert len(await ids(kit.store)) == 6

    async def test_what_is_declared_last_counts(self, kit: StoreKit) -> None:
        for concurrency in (3, 2):
            await queued_run(kit, declared(concurrency))
            await queued_run(kit, declared(concurrency))
        assert len(await ids(kit.store)) == 2

    async def test_limit_of_zero_lets_no_run_start(self, kit: StoreKit) -> None:
        await kit.store.put_limit(LimitRow(name=FLOW, concurrency=0, fixed=True))
        row = await queued_run(kit, declared(4))
        assert await ids(kit.store) == []
        assert await named(kit.store, row.id) == []

    async def test_key_that_is_stopped_does_not_hide_others(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        each = declared(1, name=f"{FLOW}/*")
        for n in range(9):
            await queued_run(kit, declared(), each, key="stopped", ready_at=now - 100 + n)
        other = await queued_run(kit, declared(), each, key="other", ready_at=now)
        await kit.store.put_limit(LimitRow(name=key_limit("refund", "stopped"), concurrency=0, fixed=True))
        assert await ids(kit.store, 2) == [other.id]

    async def test_key_that_may_go_on_is_found_when_each_other_is_stopped(self, kit: StoreKit) -> None:
        now = kit.clock.now()
        each = declared(1, name=f"{FLOW}/*")
        for n in range(30):
            await queued_run(kit, declared(), each, key=f"k{n}", ready_at=now - 100 + n)
        other = await queued_run(kit, declared(), each, key="other", ready_at=now)
        await kit.store.put_limit(LimitRow(name=f"{FLOW}/*", concurrency=0, fixed=True))
        assert await ids(kit.store, 2) == []
        keyless = await queued_run(kit, declared(), each)
        assert await ids(kit.store, 2) == [keyless.id]
        await kit.store.put_limit(LimitRow(name=key_limit("refund", "other"), concurrency=1, fixed=True))
        assert await ids(kit.store, 2) == [other.id]

    async def test_operator_limits_a_flow_that_declares_nothing(self, kit: StoreKit) -> None:
        waiting = [await kit.created() for _ in range(3)]
        other = await kit.created(flow="other")
        ready = (await kit.created(flow="refund2")).id
        await kit.store.put_limit(LimitRow(name=FLOW, concurrency=2, fixed=True))
        assert (await kit.row(waiting[0].id)).limit == FLOW
        assert (await kit.row(other.id)).limit == ""
        until = kit.clock.now() + TTL
        new = await kit.created(claimed_by="w", lease_until=until)
        assert (new.limit, new.worker) == (FLOW, "w")
        assert sorted(await ids(kit.store)) == sorted([waiting[0].id, other.id, ready])
        late = await kit.created(claimed_by="w", lease_until=until)
        assert (late.status, late.worker) == (RunStatus.pending, None)
        again, fresh = await kit.store.create(kit.new_run(id=late.id))
        assert (again.id, fresh) == (late.id, False)

    async def test_gates_are_listed_with_what_goes_on_at_them(self, kit: StoreKit) -> None:
        limits = (declared(2), declared(1, 5, name=f"{FLOW}/*"))
        for key in "aab":
            await queued_run(kit, *limits, key=key)
        await kit.created(limit="flow:other", limits=[declared(7, name="flow:other")], flow="other")
        await claim(kit.store, 1)
        found = await kit.store.limits()
        seen = {limit.name: (limit.concurrency, inside, ready) for limit, inside, ready in found}
        assert len(seen) == 5
        assert seen["flow:other"][0] == 7
        inside = seen["flow:other"][1]
        assert seen[FLOW] == (2, 1 - inside, 2 + inside)
        assert seen[f"{FLOW}/*"][0] == seen[f"{FLOW}/a"][0] == 1
        assert sum(seen[f"{FLOW}/{key}"][2] for key in "ab") == 2 + inside
        page = await kit.store.limits(prefix=f"{FLOW}/", after=f"{FLOW}/*", limit=1)
        assert [(limit.name, limit.rate, limit.updated_at) for limit, _, _ in page] == [(f"{FLOW}/a", 5, 0)]
