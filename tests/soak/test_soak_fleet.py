"""Workers that are killed, stopped and woken, while others go on with their runs."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.fleet import Fleet

pytestmark = [pytest.mark.soak, pytest.mark.anyio, pytest.mark.timeout(1200)]

MIX = [
    "bare",
    "split",
    "map",
    "pure",
    "sub",
    "script",
    "retry",
    "timer",
    "hold",
    "emit",
    "strict",
    "loop",
    "big",
]


@pytest.mark.covers("CORE-PROOF-04", "CORE-PROOF-05", "D-7", "D-17", "D-33", "FLEET-PG-15")
@pytest.mark.parametrize("store", ["sqlite", "postgres", "mariadb"])
@pytest.mark.parametrize("seed", range(6))
async def test_each_effect_happens_once_when_workers_are_killed_and_put_to_sleep(
    seed: int, store: str, tmp_path: Path, record_property: Callable[[str, int], None]
) -> None:
    dice = random.Random(seed)
    fleet = Fleet(tmp_path, linger=0.02, store=store)
    async with fleet.hf() as hf:
        service = await hf.service()
        await fleet.create(service, MIX * 12)
        fleet.start(3)
        blows = 0
        try:
            while await fleet.open_runs(service) and blows < 12:
                await (_sleep if dice.random() < 0.6 else _kill)(fleet, dice)
                blows += 1
                await fleet.answer(service)
            await fleet.until_done(service, within=180)
        finally:
            fleet.stop()
        await fleet.judge(service)
        taken_over = sum([len(await service.store.deaths(run)) for run in fleet.runs])
    record_property("soak:runs in fleets", len(fleet.runs))
    record_property("soak:workers struck", blows)
    record_property("soak:leases lost", taken_over)
    record_property("soak:in doubt", fleet.doubts)


async def _sleep(fleet: Fleet, dice: random.Random) -> None:
    worker = dice.choice(fleet.workers)
    worker.send_signal(signal.SIGSTOP)
    await asyncio.sleep(dice.uniform(0.1, 1.0))
    worker.send_signal(signal.SIGCONT)
    # What it had begun must be over before a person can know whether it happened.
    await asyncio.sleep(0.4)


async def _kill(fleet: Fleet, dice: random.Random) -> None:
    worker = dice.choice(fleet.workers)
    worker.kill()
    worker.communicate()
    fleet.workers.remove(worker)
    await asyncio.sleep(dice.uniform(0, 0.3))
    await asyncio.to_thread(fleet.start, 1)
