"""Rows of blobs: put before they are named, collected when nothing names them; stored flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.errors import BlobMissingError
from holdfast.store.rows import FlowRow
from holdfast.testing.conformance.hold_changes import asked, decided, to, traces, written
from holdfast.types.clock import MICROS
from holdfast.types.record import Refusal, Side

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

GRACE = 24 * 3600 * MICROS
A, B, C = (bytes([n]) * 32 for n in (1, 2, 3))


async def condemn(kit: StoreKit, limit: int = 99) -> list[bytes]:
    return await kit.store.condemn_blobs(older_than=kit.clock.now() - GRACE, limit=limit)


@pytest.mark.anyio
class BlobSuite:
    async def test_blob_is_kept_with_or_without_its_data(self, kit: StoreKit) -> None:
        await kit.store.put_blob(A, 3, b"abc")
        await kit.store.put_blob(B, 10**10, None)
        assert await kit.store.blob(A) == (3, b"abc")
        assert await kit.store.blob(B) == (10**10, None)
        assert await kit.store.blob(C) is None

    @pytest.mark.covers("CORE-STORE-11")
    async def test_blob_is_kept_once_when_put_twice(self, kit: StoreKit) -> None:
        for _ in range(2):
            await kit.store.put_blob(A, 3, b"abc")
        assert await kit.store.blob(A) == (3, b"abc")
        kit.clock.advance(days=2)
        assert await condemn(kit) == [A]

    @pytest.mark.covers("D-37")
    async def test_unnamed_blob_is_condemned_after_the_grace_period(self, kit: StoreKit) -> None:
        await kit.store.put_blob(A, 1, b"a")
        kit.clock.advance(hours=23)
        assert await condemn(kit) == []
        kit.clock.advance(hours=2)
        assert await condemn(kit) == [A]

    @pytest.mark.covers("D-37")
    async def test_collector_that_died_finds_its_condemned_blobs_again(self, kit: StoreKit) -> None:
        await kit.store.put_blob(A, 1, b"a")
        kit.clock.advance(days=2)
        assert await condemn(kit) == [A]
        assert await condemn(kit) == [A]
        for _ in range(2):
            await kit.store.drop_blobs([A])
        assert await condemn(kit) == []
        assert await kit.store.blob(A) is None

    @pytest.mark.covers("D-37")
    async def test_blob_that_a_run_keeps_without_a_record_stays_with_the_run(self, kit: StoreKit) -> None:
        run = (await kit.created()).id
        assert not await kit.store.keep_blob(run, A)
        await kit.store.put_blob(A, 1, b"a")
        for _ in range(2):
            assert await kit.store.keep_blob(run, A)
        await kit.store.put_blob(B, 1, b"b")
        kit.clock.advance(days=365)
        assert await condemn(kit) == [B]
        assert not await kit.store.keep_blob(run, B)
        assert await kit.store.blobs_of(run) == [A]

    @pytest.mark.covers("HOLD-FORM-03", "D-37")
    async def test_blob_that_a_hold_names_is_kept_until_it_is_let_go(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await kit.store.put_blob(A, 1, b"a")
        for _ in range(2):
            await written(kit, to(hold, blobs=(A,)))
        kit.clock.advance(days=365)
        assert await condemn(kit) == []
        after = await written(kit, to(hold, decided()))
        for _ in range(2):
            await written(kit, to(after, released_blobs=(A, B)))
        assert await condemn(kit) == [A]

    @pytest.mark.covers("HOLD-FORM-03", "D-37")
    async def test_hold_names_no_blob_that_is_not_there(self, kit: StoreKit) -> None:
        hold = await asked(kit)
        await kit.store.put_blob(A, 1, b"a")
        await kit.store.put_blob(B, 1, b"b")
        kit.clock.advance(days=2)
        assert await condemn(kit, limit=1) == [A]
        before = await traces(kit, hold)
        for missing in (A, C):
            with pytest.raises(BlobMissingError):
                await kit.store.change_hold(to(hold, {"priority": "high"}, blobs=(B, missing)))
        assert await traces(kit, hold) == before
        assert await condemn(kit) == [A, B]
        await kit.store.put_blob(A, 1, b"a")
        await written(kit, to(hold, blobs=(A,)))
        assert await condemn(kit) == [B]

    @pytest.mark.covers("D-37")
    async def test_named_blob_is_never_condemned(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.put_blob(A, 1, b"a")
        await kit.written(lease, kit.record(1, side=Side(blobs=[A])))
        await kit.store.put_blob(B, 1, b"b")
        kit.clock.advance(days=365)
        assert await condemn(kit) == [B]
        await kit.store.drop_blobs([A, B])
        assert await kit.store.blob(A) == (1, b"a")
        assert await kit.store.blob(B) is None

    @pytest.mark.covers("D-37")
    async def test_condemned_blob_must_be_put_again_before_it_is_named(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        await kit.store.put_blob(A, 1, b"a")
        kit.clock.advance(days=2)
        assert await condemn(kit) == [A]
        naming = kit.record(1, side=Side(blobs=[A]))
        assert (await kit.settle(lease, naming)).refusal is Refusal.put_blobs_again
        await kit.store.put_blob(A, 1, b"a")
        assert (await kit.settle(lease, naming)).refusal is None
        # Revived: the collector that had condemned it can no longer drop it.
        await kit.store.drop_blobs([A])
        assert await kit.store.blob(A) == (1, b"a")

    @pytest.mark.covers("D-37")
    async def test_putting_again_starts_the_grace_period_anew(self, kit: StoreKit) -> None:
        await kit.store.put_blob(A, 1, b"a")
        kit.clock.advance(hours=23)
        await kit.store.put_blob(A, 1, b"a")
        kit.clock.advance(hours=23)
        assert await condemn(kit) == []

    async def test_blob_is_free_when_the_last_run_that_names_it_is_deleted(self, kit: StoreKit) -> None:
        await kit.store.put_blob(A, 1, b"a")
        runs = [(await kit.created(first=[kit.record(0, term=0, side=Side(blobs=[A]))])).id for _ in range(2)]
        kit.clock.advance(days=2)
        await kit.store.delete_run(runs[0])
        assert await condemn(kit) == []
        await kit.store.delete_run(runs[1])
        assert await condemn(kit) == [A]

    async def test_collector_obeys_its_limit(self, kit: StoreKit) -> None:
        for digest in (A, B, C):
            await kit.store.put_blob(digest, 1, b"x")
        kit.clock.advance(days=2)
        chosen = await condemn(kit, limit=2)
        assert len(chosen) == 2
        await kit.store.drop_blobs(chosen)
        assert len(await condemn(kit)) == 1


@pytest.mark.anyio
class FlowSuite:
    @pytest.mark.covers("CORE-STORE-11")
    async def test_flow_is_kept_once_by_name_and_version(self, kit: StoreKit) -> None:
        flow = FlowRow(name="späť", version="v1", graph=b"\x00graph", created_at=5)
        for _ in range(2):
            await kit.store.put_flow(flow)
        later = FlowRow(name="späť", version="v1", graph=b"other", created_at=9)
        await kit.store.put_flow(later)
        newer = FlowRow(name="späť", version="v2", graph=b"", created_at=6)
        await kit.store.put_flow(newer)
        assert await kit.store.flow("späť", "v1") == flow
        assert await kit.store.flow("späť", "v3") is None
        assert sorted(await kit.store.flows(), key=lambda row: row.version) == [flow, newer]
        assert await kit.store.flows(6) == [newer]
        assert await kit.store.flows(7) == []
        assert await kit.store.flows(6, graphs=False) == [newer]
        listed = await kit.store.flows(graphs=False)
        assert {(row.version, row.created_at, row.graph) for row in listed} == {
            ("v1", flow.created_at, b""),
            ("v2", 6, b""),
        }
