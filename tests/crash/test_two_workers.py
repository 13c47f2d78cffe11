"""Two workers in two processes on one store never both advance a run."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from tests.crash import flows
from tests.crash.fleet import Fleet
from tests.deadlines import HANG

pytestmark = pytest.mark.anyio
STORES = ("sqlite", "postgres", "mariadb")

MIX = ["bare", "split", "map", "pure", "sub", "script", "retry", "timer", "hold", "emit"]


@pytest.mark.covers("CORE-PROOF-04", "D-2", "RS-MORE-1", "FLEET-PG-15")
@pytest.mark.parametrize("store", STORES)
async def test_each_run_is_advanced_by_one_worker_when_two_processes_share_a_store(
    store: str, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path, linger=0.01, store=store, lease=10.0)
    async with fleet.hf() as hf:
        service = await hf.service()
        await fleet.create(service, MIX * 2)
        fleet.start()
        try:
            await fleet.until_done(service)
        finally:
            fleet.stop()
        await fleet.judge(service)
        assert fleet.doubts == 0
        at_work = {line["pid"] for run in fleet.runs for line in fleet.world.lines(run)}
        assert at_work == {worker.pid for worker in fleet.workers}


@pytest.mark.covers("CORE-PROOF-04", "D-7", "D-17", "D-33", "CORE-WORK-04", "FLEET-PG-15")
@pytest.mark.parametrize("store", STORES)
async def test_worker_stops_quietly_when_it_slept_through_the_end_of_its_leases(
    store: str, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path, linger=0.03, store=store)
    async with fleet.hf() as hf:
        service = await hf.service()
        await fleet.create(service, ["bare", "split", "map", "strict", "script", "bare", "timer"])
        # Alone: another worker could end all runs before this one is caught with one.
        fleet.start(1)
        (sleeper,) = fleet.workers
        try:
            await fleet.put_to_sleep(sleeper, service)
            fleet.start(1)
            await fleet.until_taken_over(service)  # its leases end after 0.3 s
            sleeper.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.6)  # what it had begun is over: now a person can know the truth
            await fleet.until_done(service)
        finally:
            fleet.stop()
        await fleet.judge(service)


@pytest.mark.covers("R-53", "CORE-WORK-05", "CORE-PROOF-02", "FLEET-PG-15")
@pytest.mark.parametrize("store", STORES)
async def test_hundred_runs_end_as_in_peace_when_a_worker_among_them_is_killed(
    store: str, tmp_path: Path
) -> None:
    fleet = Fleet(tmp_path, linger=0.001, store=store)
    async with fleet.hf() as hf:
        service = await hf.service()
        await fleet.create(service, ["bare", "pure", "split", "map"] * 25)
        fleet.start()
        killed = fleet.workers.pop()
        try:
            await asyncio.sleep(0.3)
            killed.kill()
            killed.communicate()
            assert await fleet.open_runs(service), "the kill came too late to prove anything"
            await fleet.until_done(service)
        finally:
            fleet.stop()
        await fleet.judge(service)


@pytest.mark.covers("R-61", "CORE-WORK-05", "FLEET-PG-15")
@pytest.mark.parametrize("store", STORES)
async def test_run_fails_with_the_evidence_when_it_kills_each_worker_that_takes_it(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VICTIM_RECOVERIES", "2")
    fleet = Fleet(tmp_path, linger=0, store=store)
    deaths = 0
    async with fleet.hf() as hf:
        service = await hf.service()
        row, _ = await service.create(flows.deadly.program(), {})
        async with asyncio.timeout(HANG):
            while (await service.get(row.id)).status != "failed":
                if not fleet.workers:
                    fleet.start(1)
                if fleet.workers[0].poll() is not None:
                    fleet.workers.pop().communicate()
                    deaths += 1
                await asyncio.sleep(0.02)
        fleet.stop()
        failed = await service.get(row.id)
    assert (deaths, failed.recoveries) == (3, 3)
    assert "stopped heartbeating 3 times" in (failed.error or "")
