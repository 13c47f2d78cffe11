"""Failovers again and again, and what a synchronous standby that is away means. With the soak."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.store.rows import Capability
from holdfast.testing.conformance.kit import StoreKit
from tests.fleet.pairs import cut_off, pair
from tests.fleet.test_doctor import doctor
from tests.fleet.test_failover import CAUGHT_UP, fail_over, quick
from tests.proxy import Proxy
from tests.services.pgbouncer import pooler
from tests.services.pgcluster import Cluster, hosts
from tests.services.postgres import with_setting

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(600)]


@pytest.mark.covers("FLEET-PG-07")
@pytest.mark.parametrize("seed", range(10))
async def test_nothing_acknowledged_is_lost_whenever_the_primary_dies(tmp_path: Path, seed: int) -> None:
    """Each time with another share of the work done."""
    runs = random.Random(seed).randrange(20, 120)
    with pair(synchronous=True) as (first, second):
        address = hosts(first, second)
        took = await fail_over(first, second, address, tmp_path / "ledger", runs=runs)
        # The command line finds it too.
        found = await quick(doctor, address)
        assert (found["store"]["state"], found["replication"]["said"][:10]) == ("ok", "no standby")
    print(f"{runs} runs; the next one had ended {took:.1f} s after the primary died")


@pytest.mark.covers("FLEET-PG-07")
async def test_old_primary_is_refused_behind_a_pooler() -> None:
    """There a connection may lead elsewhere from one transaction to the next: it is asked now and then."""
    with pair(synchronous=False) as (first, second):
        async with Proxy(f"127.0.0.1:{first.port}") as proxy:
            with pooler(to=f"postgresql://postgres@{proxy.address}/postgres") as behind:
                address = with_setting(behind, look="0.2", settling="0")
                kit = StoreKit(lambda clock: open_store(address, clock=clock))
                await kit.start()
                try:
                    assert Capability.notifies not in kit.store.capabilities
                    run = (await kit.created()).id
                    await quick(first.wait_for, CAUGHT_UP)
                    await quick(second.promote)
                    await lead(proxy, second)
                    assert (await kit.row(run)).head == 0
                    await kit.created()
                    await lead(proxy, first)
                    with pytest.raises(StoreUnavailableError, match="old primary"):
                        await kit.row(run)
                    with pytest.raises(StoreUnavailableError, match="old primary"):
                        await kit.created()
                    assert first.sql("SELECT count(*) FROM holdfast.runs").strip() == "1"
                    await lead(proxy, second)
                    await kit.created()
                    assert second.sql("SELECT count(*) FROM holdfast.runs").strip() == "3"
                finally:
                    await kit.stop()


async def lead(proxy: Proxy, server: Cluster) -> None:
    """The pooler's own connections go there from now on; those to the pooler live on."""
    proxy.switch(f"127.0.0.1:{server.port}")
    proxy.cut()
    await asyncio.sleep(0.5)


@pytest.mark.covers("FLEET-PG-07")
async def test_nothing_is_acknowledged_a_second_time_while_no_standby_has_it() -> None:
    """The first time it was committed here and the wait for the standby was given up: it is seen here, but
    would be lost in a failover. Calling again must wait too."""
    with pair(synchronous=True) as (first, second):
        address = with_setting(hosts(first, second), statement_timeout="1", look="9")
        kit = StoreKit(lambda clock: open_store(address, clock=clock))
        await kit.start()
        try:
            lease = await kit.claimed()
            await quick(cut_off, second)
            new = kit.new_run(idempotency_key="once")
            for _ in range(2):
                with pytest.raises(StoreUnavailableError, match="too long"):
                    await kit.store.create(new)
                with pytest.raises(StoreUnavailableError, match="too long"):
                    await kit.settle(lease, kit.record(1))
            assert first.sql(f"SELECT count(*) FROM holdfast.runs WHERE id = '{new.id}'").strip() == "1"
            first.sql("SET synchronous_commit = local", "ALTER SYSTEM SET synchronous_standby_names = ''")
            first.sql("SELECT pg_reload_conf()")
            assert (await kit.store.create(new))[1] is False
            await kit.written(lease, kit.record(1))
        finally:
            await kit.stop()
