"""Worker processes on one database: they share the work, and one goes on where another was killed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.serve import SETTINGS, orders
from tests.services import prefork

ROOT = Path(__file__).parents[2]
RUNS = 40

pytestmark = pytest.mark.anyio


def start(address: str, ledger: Path) -> prefork.Child:
    worker = prefork.Child("tests.fleet.serve", [address, ledger], cwd=ROOT, env=os.environ)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "serving\n"
    return worker


@pytest.mark.covers("FLEET-PG-02", "FLEET-WORK-01")
async def test_every_run_ends_when_one_of_two_workers_is_killed(tmp_path: Path, address: str) -> None:
    ledger = tmp_path / "ledger.txt"
    flow = orders(ledger)
    async with Holdfast(address, settings=SETTINGS) as hf:
        service = await hf.service()
        workers = [start(address, ledger) for _ in range(2)]
        try:
            for number in range(RUNS):
                await service.create(flow.program(), {"order": f"o-{number}"})
            async with asyncio.timeout(HANG):
                await shipped(ledger, RUNS // 4)
                workers[0].kill()
                while not await all_ended(service.store):  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate(timeout=HANG)
        rows = await service.store.list_runs(RunFilter(), after=None, limit=RUNS + 1)
        assert {row.status for row in rows} == {RunStatus.completed}
        assert len(rows) == RUNS
        deaths = [len(await service.store.deaths(row.id)) for row in rows]
    done = _lines(ledger)
    assert set(done) == {f"o-{number}" for number in range(RUNS)}
    # What the killed one had under way was done again under the same key, and nothing else.
    assert len(done) - RUNS <= sum(deaths)


async def shipped(ledger: Path, count: int) -> None:
    while len(_lines(ledger)) < count:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


def _lines(ledger: Path) -> list[str]:
    return ledger.read_text().split() if ledger.exists() else []


async def all_ended(store) -> bool:
    completed = RunFilter(status=(RunStatus.completed,))
    return len(await store.list_runs(completed, after=None, limit=RUNS + 1)) == RUNS
