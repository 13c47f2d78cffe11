"""Entities: of the runs of one entity at most one has begun and has not ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.errors import RunBusyError
from holdfast.testing.conformance.kit import TTL
from holdfast.testing.conformance.limits import claim, declared, ended, ids, named
from holdfast.types.concurrency_limits import entity_limit
from holdfast.types.record import RunBatch, Side
from holdfast.types.status import BEGUN, RunStatus

if TYPE_CHECKING:
    from holdfast.store.rows import RunRow
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease


async def run_of(kit: StoreKit, key: str, deployment: str = "d-1", **given: Any) -> RunRow:
    return await kit.created(
        limit=entity_limit("refund", deployment, key), limits=[declared()], deployment=deployment,
        instance_key=key, **given,
    )  # fmt: skip


async def parked(kit: StoreKit, lease: Lease, *, ready: bool = False) -> None:
    """Waits for a person; `ready`: who has answered."""
    at = kit.clock.now() if ready else None
    assert await kit.store.park(lease, status=RunStatus.pending_input, inbox_seen=0, ready_at=at)


async def failed(kit: StoreKit, lease: Lease) -> None:
    last = kit.record(1, term=lease.term, side=Side(status=RunStatus.failed))
    await kit.store.settle([RunBatch(lease, [last])])


@pytest.mark.anyio
class EntitySuite:
    async def test_second_run_of_an_entity_starts_when_the_first_has_ended(self, kit: StoreKit) -> None:
        first, second, other = [await run_of(kit, key) for key in ("a", "a", "b")]
        taken = {one.run.id: one.lease for one in await claim(kit.store)}
        assert set(taken) == {first.id, other.id}
        assert await ids(kit.store) == await named(kit.store, second.id) == []
        await ended(kit, taken[first.id])
        assert await ids(kit.store) == [second.id]

    async def test_run_that_waits_for_a_person_keeps_its_entity(self, kit: StoreKit) -> None:
        first = await run_of(kit, "a")
        (one,) = await claim(kit.store)
        await parked(kit, one.lease)
        second = await run_of(kit, "a")
        until = kit.clock.now() + TTL
        third = await run_of(kit, "a", claimed_by="w", lease_until=until)
        assert (third.status, third.worker) == (RunStatus.pending, None)
        assert await ids(kit.store) == await named(kit.store, second.id) == []
        # It resumes before the others start.
        (again,) = await named(kit.store, first.id)
        await parked(kit, again.lease, ready=True)
        (again,) = await claim(kit.store)
        assert again.run.id == first.id
        await ended(kit, again.lease)
        assert await ids(kit.store) == [second.id]

    async def test_interrupted_run_keeps_its_entity(self, kit: StoreKit) -> None:
        first, second = [await run_of(kit, "a") for _ in range(2)]
        assert await ids(kit.store) == [first.id]
        kit.clock.advance(seconds=61)
        await kit.store.reclaim(limit=9, max_recoveries=9)
        assert (await kit.row(first.id)).status is RunStatus.resumable
        assert await named(kit.store, second.id) == []
        (again,) = await named(kit.store, first.id)
        await failed(kit, again.lease)
        assert await ids(kit.store) == [second.id]

    async def test_entities_of_other_deployments_tenants_and_keys_are_others(self, kit: StoreKit) -> None:
        rows = [
            await run_of(kit, "a"), await run_of(kit, "A"), await run_of(kit, "a "), await run_of(kit, "ä/*"),
            await run_of(kit, "a", "d-2"), await run_of(kit, "a", "d-3", tenant="globex"),
        ]  # fmt: skip
        assert sorted(await ids(kit.store)) == sorted(row.id for row in rows)

    async def test_occupied_entities_are_in_nobodys_way(self, kit: StoreKit) -> None:
        for number in range(12):
            await run_of(kit, f"k{number}")
        for one in await claim(kit.store, 12):
            await parked(kit, one.lease)
        for number in range(12):
            for _ in range(3):
                await run_of(kit, f"k{number}")
        free = await run_of(kit, "free")
        assert await ids(kit.store, 1) == [free.id]

    async def test_failed_run_is_not_resumed_while_another_is_live(self, kit: StoreKit) -> None:
        first = await run_of(kit, "a")
        (one,) = await claim(kit.store)
        await failed(kit, one.lease)
        second = await run_of(kit, "a")
        (two,) = await claim(kit.store)
        assert not await kit.store.send(first.id, "resume", b"")
        await parked(kit, two.lease)
        assert not await kit.store.send(first.id, "resume", b"")
        assert (await kit.row(first.id)).status is RunStatus.failed
        (two,) = await named(kit.store, second.id)
        await ended(kit, two.lease)
        assert await kit.store.send(first.id, "resume", b"")
        assert await ids(kit.store) == [first.id]

    async def test_one_of_many_that_are_resumed_and_started_at_once_is_live(self, kit: StoreKit) -> None:
        rows = [await run_of(kit, "a") for _ in range(4)]
        for _ in rows:
            (one,) = await claim(kit.store)
            await failed(kit, one.lease)
        new = await run_of(kit, "a")
        await asyncio.gather(
            *(kit.store.send(row.id, "resume", b"") for row in rows), named(kit.store, new.id)
        )
        live = [(await kit.row(row.id)).status in BEGUN for row in (*rows, new)]
        assert live.count(True) == 1

    async def test_one_of_many_claims_at_once_gets_the_entity(self, kit: StoreKit) -> None:
        rows = [await run_of(kit, "a") for _ in range(6)]
        found = await asyncio.gather(*(named(kit.store, row.id) for row in rows), claim(kit.store))
        taken = [one for claims in found for one in claims]
        assert len(taken) == 1

    async def test_run_of_an_entity_is_not_superseded_while_a_worker_has_it(self, kit: StoreKit) -> None:
        first, other = await run_of(kit, "a"), await kit.created()
        (one, _) = sorted(await claim(kit.store), key=lambda taken: taken.run.id != first.id)
        new = kit.new_run(supersedes=first.id)
        with pytest.raises(RunBusyError, match="is being advanced by a worker"):
            await kit.store.create(new)
        assert (await kit.row(first.id)).status is RunStatus.running
        # Only entities are one at a time.
        await kit.store.create(kit.new_run(supersedes=other.id))
        assert (await kit.row(other.id)).status is RunStatus.cancelled
        await parked(kit, one.lease)
        _, created = await kit.store.create(new)
        assert created
        assert (await kit.row(first.id)).status is RunStatus.cancelled
