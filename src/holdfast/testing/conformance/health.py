"""What a store reports about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.types.record import Side

if TYPE_CHECKING:
    from holdfast.testing.conformance.kit import StoreKit

A, B = b"\x0a" * 32, b"\x0b" * 32


@pytest.mark.anyio
class HealthSuite:
    @pytest.mark.covers("TOOL-CLI-19")
    @pytest.mark.parametrize("deep", [False, True])
    async def test_store_reports_its_blobs_and_what_refers_to_them(self, kit: StoreKit, deep: bool) -> None:
        for digest in (A, B):
            await kit.store.put_blob(digest, 1, b"x")
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1, side=Side(blobs=[A])))
        facts = await kit.store.examine(deep=deep)
        assert (facts.blobs, facts.unreferenced, facts.condemned) == (2, 1, 0)
        assert (facts.missing, facts.problems) == ([], [])
        kit.clock.advance(days=2)
        await kit.store.condemn_blobs(older_than=kit.clock.now(), limit=9)
        assert (await kit.store.examine(deep=deep)).condemned == 1

    async def test_store_says_how_safe_what_it_acknowledges_is(self, kit: StoreKit) -> None:
        facts = await kit.store.durability()
        assert all(": " in weakness for weakness in facts.weak)  # what is set, and what can be lost

    @pytest.mark.covers("TOOL-CLI-19")
    async def test_store_names_runs_whose_worker_is_gone_until_they_are_freed(self, kit: StoreKit) -> None:
        lease = await kit.claimed()
        assert (await kit.store.examine(deep=False)).lapsed == []
        kit.clock.advance(hours=1)
        assert (await kit.store.examine(deep=False)).lapsed == [lease.run]
        await kit.store.reclaim(limit=9, max_recoveries=5)
        assert (await kit.store.examine(deep=False)).lapsed == []
