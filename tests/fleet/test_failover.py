"""A primary dies and its standby is promoted: work goes on there by itself, never on the old one again."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast import Holdfast
from holdfast.cli.doctor.store import server_findings
from holdfast.errors import StoreUnavailableError
from holdfast.store.open import open_store
from holdfast.store.rows import ClaimRequest, RunFilter
from holdfast.testing.conformance.kit import TTL, StoreKit
from holdfast.types.status import HoldStatus, RunStatus
from tests.deadlines import HANG
from tests.fleet.pairs import SETTINGS, Client, come_back, lines, orders, pair, workers
from tests.proxy import Proxy
from tests.services.pgcluster import Cluster, hosts
from tests.services.postgres import with_setting

pytestmark = pytest.mark.anyio

T = TypeVar("T")


CAUGHT_UP = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_flush_lsn()"


async def quick(act: Callable[..., T], *args: Any) -> T:
    return await asyncio.to_thread(act, *args)


async def fail_over(first: Cluster, second: Cluster, address: str, ledger: Path, *, runs: int) -> float:
    """Seconds from the death of the primary until the next run has ended."""
    flow = orders(ledger)
    async with Holdfast(address, settings=SETTINGS) as hf:
        client = Client(await hf.service(), flow)
        store = client.service.store
        with workers(address, ledger, 2):
            ordering = [asyncio.create_task(client.order(f"o-{n}")) for n in range(runs)]
            while len(client.completed) < runs // 4:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            (replication,) = [
                f for f in server_findings(await store.durability()) if f.check == "replication"
            ]
            assert (replication.state, replication.said[:18]) == ("ok", "synchronous (two):")
            await quick(first.kill)
            before, died = len(client.completed), time.monotonic()
            await quick(second.promote)
            while len(client.completed) == before:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            took = time.monotonic() - died
            async with asyncio.timeout(90):
                await asyncio.gather(*ordering)
        await nothing_is_lost(client, ledger)
    return took


async def nothing_is_lost(client: Client, ledger: Path) -> None:
    store = client.service.store
    rows = await store.list_runs(RunFilter(), after=None, limit=10_000)
    assert {row.id for row in rows} == set(client.created.values())
    assert {row.id for row in rows if row.status is RunStatus.completed} == client.completed
    decided = await store.holds(status=HoldStatus.resolved, limit=10_000)
    assert {hold.id for hold in decided if hold.node == "approve"} >= client.answered
    # Each charge once, though it has no key: nobody had to ask whether it had happened.
    assert sorted(lines(ledger)) == sorted(client.created)


@pytest.mark.covers("FLEET-PG-07")
async def test_work_goes_on_when_the_primary_dies_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    with pair(synchronous=True) as (first, second):
        address = hosts(first, second)
        took = await fail_over(first, second, address, tmp_path / "ledger", runs=24)
        assert took < HANG  # about one second, on a machine that does nothing else
        await nobody_writes_to_the_old_one(first, second, address, tmp_path / "more")


async def nobody_writes_to_the_old_one(first: Cluster, second: Cluster, address: str, ledger: Path) -> None:
    """It comes back and takes writes, and is the first of the address."""
    flow = orders(ledger)
    async with Holdfast(address, settings=SETTINGS) as hf:
        client = Client(await hf.service(), flow)
        with workers(address, ledger, 1):
            await client.order("before")
            await quick(come_back, first)
            first.sql("CREATE TABLE it_takes_writes ()")
            there = first.sql("SELECT count(*), max(updated_at) FROM holdfast.runs")
            # Those who were there, with new connections too; somebody new; and the command line's way in.
            second.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'postgres' AND pid <> pg_backend_pid()"
            )
            async with asyncio.timeout(HANG):
                await client.order("after")
            store = await open_store(address)
            assert len(await store.list_runs(RunFilter(), after=None, limit=99)) == 26
            await store.close()
    assert first.sql("SELECT count(*), max(updated_at) FROM holdfast.runs") == there
    assert lines(ledger) == ["before", "after"]


@pytest.mark.covers("FLEET-PG-07")
async def test_store_leaves_a_primary_that_says_nothing_any_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No reset, no refusal: as when a cable is pulled out. The old primary lives on and takes writes."""
    with pair(synchronous=False) as (first, second):
        async with Proxy(f"127.0.0.1:{first.port}") as proxy:
            address = with_setting(
                f"postgresql://postgres@{proxy.address},127.0.0.1:{second.port}/postgres",
                look="0.5", timeout="2", settling="0.5",
            )  # fmt: skip
            kit = StoreKit(lambda clock: open_store(address, clock=clock))
            await kit.start()
            try:
                lease = await kit.claimed()
                assert await quick(kit.store.extend_now, [lease], TTL) == [True]
                await kit.store.wait_change(0.01)
                await quick(first.wait_for, CAUGHT_UP)
                proxy.swallow()
                silent = asyncio.create_task(kit.settle(lease, kit.record(1)))
                await asyncio.sleep(0.2)
                await quick(second.promote)
                # Without time-outs of the store this waits for those of TCP: many minutes.
                with pytest.raises(StoreUnavailableError):
                    await silent
                await kit.written(lease, kit.record(1))
                assert await quick(kit.store.extend_now, [lease], TTL) == [True]
                woken = asyncio.create_task(kit.store.wait_change(10))
                await asyncio.sleep(0.2)
                other = await open_store(second.address, clock=kit.clock)
                await other.create(kit.new_run())
                assert await woken
                await other.close()
                # The cable is back, and with it the old primary, which knows nothing of all this.
                proxy.clear()
                await asyncio.sleep(1)
                await kit.written(lease, kit.record(2))
                assert (await kit.row(lease.run)).head == 2
                assert first.sql(f"SELECT head FROM holdfast.runs WHERE id = '{lease.run}'").strip() in "01"
            finally:
                await kit.stop()
    assert any("does not answer" in record.message for record in caplog.records)


@pytest.mark.covers("FLEET-PG-07")
async def test_store_refuses_an_old_primary_and_another_cluster(caplog: pytest.LogCaptureFixture) -> None:
    """One address whose server changes behind it, as behind a name or a load balancer."""
    with pair(synchronous=False) as (first, second):
        async with Proxy(f"127.0.0.1:{first.port}") as proxy:
            address = with_setting(f"postgresql://postgres@{proxy.address}/postgres", settling="0")
            kit = StoreKit(lambda clock: open_store(address, clock=clock))
            await kit.start()
            other = Cluster(own=True)
            try:
                run = (await kit.created()).id
                await quick(first.wait_for, CAUGHT_UP)
                # Connections to the old one live on, and it says that it only reads: nothing fails.
                first.sql("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
                await quick(second.promote)
                proxy.switch(f"127.0.0.1:{second.port}")
                await kit.created()
                assert second.sql("SELECT count(*) FROM holdfast.runs").strip() == "2"
                # It takes writes again, and the address leads to it.
                again = "ALTER SYSTEM RESET default_transaction_read_only"
                first.sql("SET default_transaction_read_only = off", again, "SELECT pg_reload_conf()")
                proxy.switch(f"127.0.0.1:{first.port}")
                proxy.cut()
                with pytest.raises(StoreUnavailableError, match=r"old primary.*timeline 1.*timeline 2"):
                    await kit.row(run)
                with pytest.raises(StoreUnavailableError, match="old primary"):
                    await kit.created()
                assert first.sql("SELECT count(*) FROM holdfast.runs").strip() == "1"
                await quick(other.start)
                proxy.switch(f"127.0.0.1:{other.port}")
                with pytest.raises(StoreUnavailableError, match="another cluster"):
                    await kit.created()
                proxy.switch(f"127.0.0.1:{second.port}")
                assert await kit.store.claim(ClaimRequest(worker="w", ttl=TTL, run=run))
            finally:
                await kit.stop()
                other.remove()
    assert [r for r in caplog.records if r.levelno == logging.ERROR and "an old primary" in r.message]
