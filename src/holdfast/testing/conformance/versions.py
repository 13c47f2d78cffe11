"""A run migrates to another version of its flow: one fenced write, and claims follow it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.store.rows import ClaimRequest
from holdfast.testing.conformance.kit import TTL
from holdfast.types.record import Kind, Park, Record, Refusal, RunBatch, Side, VersionChange
from holdfast.types.status import RunStatus

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.ids import HoldId


def _over(kit: StoreKit, seq: int, term: int, hold: HoldId | None = None) -> Record:
    holds = () if hold is None else ((hold, "map.1[0]/", "confirm"),)
    to = VersionChange(seq=seq, version="v2", code="c2", holds=holds)
    return kit.record(seq, kind=Kind.snapshot, outcome="migrated", term=term, side=Side(migrated=to))


@pytest.mark.anyio
class VersionSuite:
    @pytest.mark.covers("TOOL-VER-04", "TOOL-VER-08")
    async def test_migration_changes_the_run_and_the_places_of_its_holds_at_once(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        before = await kit.hold(hold)
        answer = await kit.written(lease, _over(kit, 2, lease.term, hold))
        row, after = await kit.row(lease.run), await kit.hold(hold)
        assert (row.version, row.code, row.migrated, row.head) == ("v2", "c2", 2, 2)
        assert (after.scope, after.node, after.version) == ("map.1[0]/", "confirm", before.version + 1)
        assert (after.id, after.seq, after.status) == (before.id, before.seq, before.status)
        assert await kit.settle(lease, _over(kit, 2, lease.term, hold)) == answer
        assert await kit.hold(hold) == after

    @pytest.mark.covers("TOOL-VER-08")
    async def test_migration_is_refused_whole_when_the_lease_is_lost(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        hold = await kit.asked(lease)
        before = (await kit.hold(hold), (await kit.row(lease.run)).version)
        await kit.taken_over(lease)
        refused = await kit.settle(lease, _over(kit, 2, lease.term, hold))
        assert refused.refusal is Refusal.fenced
        assert (await kit.hold(hold), (await kit.row(lease.run)).version) == before

    @pytest.mark.covers("TOOL-VER-01")
    async def test_run_is_claimed_by_workers_of_its_new_version_only(self, kit: StoreKit) -> None:
        """Parked until a time at which it was ready before: the earlier queue entry must not count."""
        ready = kit.clock.now()
        lease = await kit.claimed(ready_at=ready)
        park = Park(RunStatus.resumable, 0, ready)
        (answer,) = await kit.store.settle([RunBatch(lease, [_over(kit, 1, lease.term)], park)])
        assert answer.parked
        assert not await kit.store.claim(ClaimRequest(worker="old", ttl=TTL, versions=("v1",)))
        (claim,) = await kit.store.claim(ClaimRequest(worker="new", ttl=TTL, versions=("v2",)))
        assert (claim.run.id, claim.run.version) == (lease.run, "v2")

    @pytest.mark.covers("D-34", "CORE-STORE-11")
    async def test_marks_of_code_are_kept_once_by_digest(self, kit: StoreKit) -> None:
        for marks in (b'{"pay":"c1"}', b"other"):
            await kit.store.put_code("c1-späť", marks)
        assert await kit.store.code("c1-späť") == b'{"pay":"c1"}'
        assert await kit.store.code("c1-none") is None

    @pytest.mark.covers("TOOL-VER-06", "D-36")
    async def test_adopted_history_has_the_record_of_the_migration(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, _over(kit, 1, lease.term))
        history = await kit.store.history(lease.run)
        assert history is not None
        await kit.store.park(lease, status=RunStatus.resumable, inbox_seen=0, ready_at=None)
        assert await kit.store.delete_run(lease.run)
        adopted, fresh = await kit.store.adopt(history)
        assert (fresh, adopted.version, adopted.migrated) == (True, "v2", 1)
