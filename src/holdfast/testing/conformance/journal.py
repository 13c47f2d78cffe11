"""Reading the journal back: ranges, lists, snapshots, pruning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import BlobMissingError, StoreError
from holdfast.types.record import Kind, Record, RunBatch, Side

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit
    from holdfast.types.lease import Lease


async def long_run(kit: StoreKit, records: int = 9) -> Lease:
    """Records 0 .. records; every third is a snapshot, odd ones are of node `odd`, and 5 is not listed."""
    lease = await kit.claimed()
    batch = [
        kit.record(
            seq,
            kind=Kind.step if seq % 3 else Kind.snapshot,
            node="odd" if seq % 2 else "even",
            listed=seq != 5,
        )
        for seq in range(1, records + 1)
    ]
    await kit.written(lease, *batch)
    return lease


@pytest.mark.anyio
class JournalSuite:
    async def test_range_is_read_by_its_ends(self, kit: StoreKit) -> None:
        run = (await long_run(kit)).run

        async def seqs(first: int, last: int | None) -> list[int]:
            return [record.seq for record in await kit.store.read(run, first=first, last=last)]

        assert await seqs(0, None) == list(range(10))
        assert await seqs(3, 5) == [3, 4, 5]
        assert await seqs(7, None) == [7, 8, 9]
        assert await seqs(0, 0) == [0]
        assert await seqs(8, 99) == [8, 9]
        assert await seqs(5, 4) == []
        assert await seqs(10, None) == []

    @pytest.mark.covers("D-4", "G-7")
    async def test_columns_are_read_without_the_payload(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        given = kit.record(
            1,
            kind=Kind.intent,
            node="pay",
            visit=3,
            attempt=2,
            scope="a/b",
            effect="external",
            outcome="unknown",
        )
        await kit.written(lease, given)
        (record,) = await kit.store.read(lease.run, first=1, payloads=False)
        assert record.payload == b""
        given.size, given.payload, given.event_from = len(given.payload), b"", 2
        if kit.sealed:
            given.size, given.digest = record.size, record.digest
        assert record == given

    @pytest.mark.covers("R-4", "G-1", "RS-STORE-8", "RS-STORE-9")
    async def test_checkpoints_are_listed_newest_first_without_payload(self, kit: StoreKit) -> None:
        run = (await long_run(kit)).run
        listed = await kit.store.checkpoint_records(run)
        assert [record.seq for record in listed] == [9, 8, 7, 6, 4, 3, 2, 1, 0]
        assert {record.payload for record in listed} == {b""}
        assert [record.seq for record in await kit.store.checkpoint_records(run, limit=3)] == [9, 8, 7]
        assert [record.seq for record in await kit.store.checkpoint_records(run, before=5, limit=2)] == [4, 3]
        assert [record.seq for record in await kit.store.checkpoint_records(run, node="odd")] == [9, 7, 3, 1]
        page = await kit.store.checkpoint_records(run, node="odd", before=7, limit=1)
        assert [record.seq for record in page] == [3]
        assert await kit.store.checkpoint_records(run, node="nobody") == []

    @pytest.mark.covers("G-2")
    async def test_latest_is_by_seq_and_not_by_time(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, at=500), kit.record(2, at=500), kit.record(3, at=400))
        (latest,) = await kit.store.checkpoint_records(lease.run, limit=1)
        assert latest.seq == 3

    @pytest.mark.covers("D-27")
    async def test_last_snapshot_is_the_newest_not_after(self, kit: StoreKit) -> None:
        run = (await long_run(kit)).run
        found = [await kit.store.last_snapshot(run, seq) for seq in (0, 2, 3, 5, 8, 9, 99)]
        assert found == [0, 0, 3, 3, 6, 9, 9]
        assert await kit.store.last_snapshot(run, -1) is None

    @pytest.mark.covers("RS-STORE-13")
    async def test_pruned_run_begins_at_its_horizon(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        snapshot = kit.record(4, kind=Kind.snapshot, payload=b"all so far")
        assert await kit.store.prune(lease.run, horizon=4, replace=snapshot) == 4
        assert [record.seq for record in await kit.store.read(lease.run)] == list(range(4, 10))
        (first,) = await kit.store.read(lease.run, last=4)
        assert (first.kind, first.payload, first.digest) == (Kind.snapshot, b"all so far", snapshot.digest)
        row = await kit.row(lease.run)
        assert (row.horizon, row.head, row.event_seq) == (4, 9, 10)
        assert await kit.store.last_snapshot(lease.run, 5) == 4
        assert await kit.store.last_snapshot(lease.run, 3) is None
        assert [record.seq for record in await kit.store.checkpoint_records(lease.run)][-1] == 4

    @pytest.mark.covers("SAFE-READ-02")
    async def test_later_snapshots_are_rewritten_with_the_prune(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        snapshot = kit.record(4, kind=Kind.snapshot, payload=b"all so far")
        later = kit.record(6, kind=Kind.snapshot, payload=b"all until here")
        before = {record.seq: record for record in await kit.store.read(lease.run)}
        for wrong in (4, 3):
            early = kit.record(wrong, kind=Kind.snapshot)
            with pytest.raises(StoreError):
                await kit.store.prune(lease.run, horizon=4, replace=snapshot, later=[early])
        assert len(await kit.store.read(lease.run)) == 10
        assert await kit.store.prune(lease.run, horizon=4, replace=snapshot, later=[later]) == 4
        kept = {record.seq: record for record in await kit.store.read(lease.run)}
        assert (kept[6].payload, kept[6].digest) == (b"all until here", later.digest)
        assert kept[6].event_from == before[6].event_from
        assert [kept[seq] for seq in (5, 7, 8, 9)] == [before[seq] for seq in (5, 7, 8, 9)]

    @pytest.mark.covers("CORE-STORE-11")
    async def test_pruning_again_deletes_nothing(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        snapshot = kit.record(4, kind=Kind.snapshot, payload=b"all so far")
        await kit.store.prune(lease.run, horizon=4, replace=snapshot)
        before = await kit.store.read(lease.run)
        assert await kit.store.prune(lease.run, horizon=4, replace=snapshot) == 0
        assert await kit.store.prune(lease.run, horizon=2, replace=None) == 0
        assert await kit.store.read(lease.run) == before
        assert (await kit.row(lease.run)).horizon == 4

    @pytest.mark.covers("D-37", "D-27")
    async def test_snapshot_that_replaces_the_pruned_part_protects_its_blobs(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        snapshot = kit.record(4, kind=Kind.snapshot, payload=b"all so far", side=Side(blobs=[b"d"]))
        with pytest.raises(BlobMissingError):
            await kit.store.prune(lease.run, horizon=4, replace=snapshot)
        assert len(await kit.store.read(lease.run)) == 10
        await kit.store.put_blob(b"d", 1, b"x")
        assert await kit.store.prune(lease.run, horizon=4, replace=snapshot) == 4
        kit.clock.advance(days=9)
        assert await kit.store.condemn_blobs(older_than=kit.clock.now(), limit=9) == []

    async def test_kept_events_keep_their_numbers_when_the_rest_is_pruned(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        await kit.store.prune(lease.run, horizon=4, replace=kit.record(4, kind=Kind.snapshot))
        rows = await kit.store.events(lease.run, after=0, limit=99)
        assert [row.event_from for row in rows if isinstance(row, Record)] == [5, 6, 7, 8, 9, 10]
        assert len(await kit.store.events(lease.run, after=7, limit=99)) == 3

    async def test_pruned_run_goes_on(self, kit: StoreKit) -> None:
        lease = await long_run(kit)
        assert await kit.store.prune(lease.run, horizon=6, replace=None) == 6
        answer = await kit.written(lease, kit.record(10))
        assert answer.event_from == 11
        assert await kit.settle(lease, kit.record(10)) == answer
        assert [record.seq for record in await kit.store.read(lease.run)] == list(range(6, 11))
        assert [record.seq for record in await kit.store.read(lease.run, first=8, last=9)] == [8, 9]

    async def test_pruning_one_run_leaves_the_others(self, kit: StoreKit) -> None:
        one, other = await long_run(kit), await long_run(kit)
        await kit.store.prune(one.run, horizon=9, replace=None)
        assert len(await kit.store.read(other.run)) == 10

    @pytest.mark.covers("G-3", "D-4")
    async def test_later_records_never_change_an_earlier_one(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        before = await kit.store.read(lease.run)
        for seq in range(1, 30):
            await kit.store.settle([RunBatch(lease, [kit.record(seq)])])
        assert await kit.store.read(lease.run, last=0) == before
