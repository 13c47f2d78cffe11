"""The graceful shutdown of a worker: running steps may finish, then the runs are released for other
workers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from holdfast.runs.driver.driver import Driver
from holdfast.types.ids import RunId

TICK = 0.05  # seconds


async def drain(
    tasks: Mapping[RunId, asyncio.Task[None]], drivers: Mapping[RunId, Driver], grace: float
) -> None:
    """Until all have ended; those that have not after `grace` seconds are cancelled. The owner removes a task
    that ends from `tasks`."""
    deadline = asyncio.get_running_loop().time() + grace
    while tasks and asyncio.get_running_loop().time() < deadline:
        for run in tasks:
            driver = drivers.get(run)
            if driver is not None and not driver.session.draining:
                driver.drain()
        await asyncio.wait(tasks.values(), timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
    late = list(tasks.values())
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
