"""Worker processes that are killed in the midst of firing: no instant starts two runs, and none is missed."""

from __future__ import annotations

import asyncio
import os
from itertools import cycle
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.runs.schedules.cron import newest
from holdfast.runs.schedules.derive import run_id_for
from holdfast.runs.service import RunService
from holdfast.store.rows import RunFilter
from holdfast.types.clock import MICROS
from tests.deadlines import HANG
from tests.fleet.clock_process import SETTINGS, ticks
from tests.services import prefork

ROOT = Path(__file__).parents[2]
NAME = "every-second"

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-WORK-10")]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'runs.db'}"
    return request.getfixturevalue("address")


def start(address: str, point: str) -> prefork.Child:
    return prefork.Child("tests.fleet.clock_process", [address, point], cwd=ROOT, env=os.environ)


async def test_no_instant_is_started_twice_or_missed_when_workers_are_killed_while_firing(place: str) -> None:
    async with Holdfast(place, settings=SETTINGS) as hf:
        schedules, service = await hf.schedules(), await hf.service()
        made = await schedules.put(NAME, ticks(), every="1s", missed="all", overlap="allow")
        assert made.next_at is not None
        await killed_while_firing(place, seconds=4)
        # Workers that live finish what is due.
        last = service.store.now() // MICROS * MICROS
        worker = start(place, "none:0")
        try:
            async with asyncio.timeout(60):
                while await behind(service, last):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        finally:
            worker.kill()
            worker.communicate(timeout=HANG)
        await schedules.pause(NAME)
        found = await schedules.get(NAME)
        assert found.last_at is not None
        due = newest(found.plan, made.next_at, found.last_at, 1000)
        rows = await service.store.list_runs(RunFilter(), after=None, limit=1000)
        started = {row.id for row in rows}
        # One that died between the last two steps may have started one more than the schedule knows of.
        expected = {run_id_for(found, instant) for instant in due}
        ahead = run_id_for(found, found.last_at + MICROS)
        assert expected <= started <= expected | {ahead}
        assert len(rows) == len(started)


async def behind(service: RunService, last: int) -> bool:
    row = await service.store.schedule("default", NAME)
    assert row is not None
    return row.last_at is None or row.last_at < last


async def killed_while_firing(address: str, seconds: float) -> None:
    """Three workers, each to die at a point of its own, replaced when it did: for so long, and until each
    point was reached."""
    points = cycle(["created:1", "intended:1", "created:2"])
    workers = [(point, start(address, point)) for point in (next(points) for _ in range(3))]
    died: set[str] = set()
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        while clock() - began < seconds or died != {"intended", "created"}:
            assert clock() - began < 60, f"reached in a minute: {died}"
            for number, (point, worker) in enumerate(workers):
                if worker.poll() is not None:
                    died.add(point.partition(":")[0])
                    worker.communicate()
                    fresh = next(points)
                    workers[number] = (fresh, start(address, fresh))
            await asyncio.sleep(0.02)
    finally:
        for _, worker in workers:
            worker.kill()
            worker.communicate(timeout=HANG)
