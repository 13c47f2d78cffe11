"""Runs whose worker died: which of them are counted, and how they are claimed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import msgspec
import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.reclaim import reclaim
from holdfast.types.clock import MICROS
from holdfast.types.concurrency_limits import LimitRow, flow_limit
from holdfast.types.event import EventRow
from holdfast.types.record import Kind
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease

SUSPECTS = ClaimRequest(worker="alone", ttl=TTL, suspects=True)
OTHERS = ClaimRequest(worker="crowded", ttl=TTL, limit=9)
BOUND = 2


async def claimed_together(kit: StoreKit, count: int, worker: str = "crowded") -> list[Lease]:
    for _ in range(count):
        await kit.created()
    want = ClaimRequest(worker=worker, ttl=TTL, limit=count)
    return [claim.lease for claim in await kit.store.claim(want)]


async def suspected(kit: StoreKit, count: int) -> list[Lease]:
    """Runs that were twice on one worker that died; the leases are the first ones."""
    leases = await claimed_together(kit, count)
    for _ in range(2):
        kit.clock.advance(seconds=61)
        rows = await reclaim(kit)
        assert len(rows) == count
        if not rows[0].suspect:
            again = ClaimRequest(worker="crowded-again", ttl=TTL, limit=count)
            assert len(await kit.store.claim(again)) == count
    return leases


@pytest.mark.anyio
class SuspectsSuite:
    @pytest.mark.covers("SAFE-FLEET-01")
    async def test_death_beside_other_runs_counts_against_none_of_them(self, kit: StoreKit) -> None:
        leases = await claimed_together(kit, 4)
        kit.clock.advance(seconds=61)
        rows = await reclaim(kit, max_recoveries=0)
        assert {(row.status, row.recoveries, row.suspect, row.dead) for row in rows} == {
            (RunStatus.resumable, 0, False, False)
        }
        assert {row.ready_at for row in rows} == {kit.clock.now()}, "a first recovery does not wait"
        for lease in leases:
            (death,) = await kit.store.deaths(lease.run)
            assert (death.worker, death.alone) == ("crowded", False)
            events = await kit.store.events(lease.run, after=0, limit=9)
            (event,) = [event for event in events if isinstance(event, EventRow)]
            assert msgspec.json.decode(event.payload)["alone"] is False

    @pytest.mark.covers("SAFE-FLEET-01")
    async def test_runs_continue_beside_others_after_one_death_and_alone_after_two_without_progress(
        self, kit: StoreKit
    ) -> None:
        await claimed_together(kit, 3)
        kit.clock.advance(seconds=61)
        await reclaim(kit)
        first, second, third = [claim.lease for claim in await kit.store.claim(OTHERS)]
        await kit.written(first, kit.record(1, term=first.term))
        await kit.written(second, kit.record(1, kind=Kind.intent, term=second.term))
        kit.clock.advance(seconds=61)
        rows = {row.id: row for row in await reclaim(kit)}
        assert [rows[lease.run].suspect for lease in (first, second, third)] == [False, True, True]
        assert [claim.run.id for claim in await kit.store.claim(OTHERS)] == [first.run]

    @pytest.mark.parametrize("parked", [False, True])
    async def test_run_whose_neighbour_is_reclaimed_in_another_sweep_is_not_counted(
        self, kit: StoreKit, parked: bool
    ) -> None:
        """The neighbour's lease was requested later, or earlier."""
        first, second = await claimed_together(kit, 2)
        kit.clock.advance(seconds=20)
        assert await kit.store.extend([second], TTL) == [True]
        if parked:
            assert await kit.store.set_idle(second, status=RunStatus.pending_input)
        kit.clock.advance(seconds=41)
        (row,) = await reclaim(kit, max_recoveries=0)
        assert (row.id, row.recoveries, row.dead) == (first.run, 0, False)
        kit.clock.advance(seconds=20)
        (row,) = await reclaim(kit, max_recoveries=0)
        assert (row.id, row.recoveries, row.dead) == (second.run, 0, False)
        assert bool(await kit.store.deaths(row.id)) is not parked, "what only waited killed nothing"

    async def test_suspect_is_claimed_by_a_worker_that_asks_for_suspects_alone(self, kit: StoreKit) -> None:
        (lease,) = await suspected(kit, 1)
        await kit.created()
        (other,) = await kit.store.claim(OTHERS)
        assert other.run.id != lease.run
        (suspect,) = await kit.store.claim(SUSPECTS)
        assert (suspect.run.id, suspect.run.suspect) == (lease.run, True)
        assert await kit.store.claim(SUSPECTS) == []

    async def test_suspect_is_claimed_by_its_id_as_any_other_run(self, kit: StoreKit) -> None:
        (lease, _) = await suspected(kit, 2)
        assert (await kit.claim(lease.run, "crowded-2")).run.suspect is False
        await kit.claim((await kit.created()).id, "crowded-2")
        kit.clock.advance(seconds=61)
        (row, _) = sorted(await reclaim(kit, max_recoveries=0), key=lambda row: row.id != lease.run)
        assert (row.id, row.recoveries, row.dead) == (lease.run, 0, False)

    async def test_suspect_that_dies_again_is_counted_until_its_isolation_ends(self, kit: StoreKit) -> None:
        await suspected(kit, 2)
        for count in (1, 2):
            (claim,) = await kit.store.claim(SUSPECTS)
            kit.clock.advance(seconds=61)
            (row,) = await reclaim(kit)
            assert (row.id, row.recoveries) == (claim.run.id, 1), count
        (claim,) = await kit.store.claim(SUSPECTS)
        await kit.written(claim.lease, kit.record(1, term=claim.lease.term))
        assert await kit.store.end_isolation(claim.lease) is True
        assert await kit.store.end_isolation(claim.lease) is True
        assert (await kit.row(claim.run.id)).suspect is False
        assert await kit.store.end_isolation(msgspec.structs.replace(claim.lease, term=1)) is False
        await kit.claim((await kit.created()).id, "alone")
        kit.clock.advance(seconds=61)
        assert {row.recoveries for row in await reclaim(kit)} == {0}

    async def test_oldest_ready_suspect_that_is_served_is_found(self, kit: StoreKit) -> None:
        lease = await kit.claimed(lane="slow", version="v1")
        for _ in range(2):
            kit.clock.advance(seconds=61)
            assert await kit.store.next_suspect(SUSPECTS) is None
            await kit.store.reclaim(limit=9, max_recoveries=9)
            lapsed = await kit.row(lease.run)
            if not lapsed.suspect:
                await kit.claim(lease.run)
        found_at = kit.clock.now()
        for want, found in (
            (SUSPECTS, found_at),
            (msgspec.structs.replace(SUSPECTS, lanes=("slow",), versions=("v1",)), found_at),
            (msgspec.structs.replace(SUSPECTS, lanes=("fast",)), None),
            (msgspec.structs.replace(SUSPECTS, versions=("v2",)), None),
        ):
            assert await kit.store.next_suspect(want) == found
        kit.clock.advance(seconds=5)
        assert await kit.store.next_suspect(SUSPECTS) == found_at
        await kit.claim(lease.run)
        assert await kit.store.next_suspect(SUSPECTS) is None
        kit.clock.advance(seconds=61)
        await kit.store.reclaim(limit=9, max_recoveries=9, backoff=9 * MICROS)
        await kit.claim(lease.run)
        kit.clock.advance(seconds=61)
        await kit.store.reclaim(limit=9, max_recoveries=9, backoff=9 * MICROS)
        assert await kit.store.next_suspect(SUSPECTS) is None, "it is not ready yet"

    async def test_suspect_with_a_limit_makes_no_worker_wait_and_is_found_if_asked_for(
        self, kit: StoreKit
    ) -> None:
        limit = LimitRow(name=flow_limit("refund"), concurrency=1)
        await kit.created(limit=limit.name, limits=[limit])
        for nth in range(2):
            assert len(await kit.store.claim(msgspec.structs.replace(OTHERS, worker=f"w{nth}"))) == 1
            kit.clock.advance(seconds=61)
            await reclaim(kit)
        assert await kit.store.next_suspect(SUSPECTS) is None
        assert await kit.store.next_suspect(SUSPECTS, limited=True) == kit.clock.now()

    @pytest.mark.covers("SAFE-FLEET-01")
    @pytest.mark.parametrize("seed", range(4))
    async def test_no_run_but_the_one_that_kills_its_workers_is_ever_counted(
        self, kit: StoreKit, seed: int
    ) -> None:
        """Workers claim, make progress and die in any order; a worker that has the poisoned run dies."""
        random = Random(seed)
        runs = [(await kit.created()).id for _ in range(5)]
        poisoned = random.choice(runs)
        for nth in range(60):
            if (await kit.row(poisoned)).dead:
                break
            alone = random.random() < 0.5
            want = SUSPECTS if alone else OTHERS
            worker = random.choice(["fixed-name", f"worker-{nth}"])
            want = msgspec.structs.replace(want, worker=worker, limit=1 if alone else 5)
            held = [claim.lease for claim in await kit.store.claim(want)]
            if poisoned not in {lease.run for lease in held}:
                await _ended_well(kit, held, random)
            kit.clock.advance(seconds=61)
            await reclaim(kit, limit=random.choice([1, 9]), max_recoveries=BOUND)
            await reclaim(kit, max_recoveries=BOUND)
        assert (await kit.row(poisoned)).dead
        for run in runs:
            if run != poisoned:
                row = await kit.row(run)
                assert (row.recoveries, row.dead) == (0, False)


async def _ended_well(kit: StoreKit, leases: list[Lease], random: Random) -> None:
    """No worker dies: each run makes progress, and ends or is released."""
    for lease in leases:
        seq = (await kit.row(lease.run)).head + 1
        kind = random.choice([Kind.step, Kind.intent])
        await kit.written(lease, kit.record(seq, kind=kind, term=lease.term))
        inbox = (await kit.row(lease.run)).inbox_seq
        assert await kit.store.park(
            lease, status=RunStatus.resumable, inbox_seen=inbox, ready_at=kit.clock.now()
        )
