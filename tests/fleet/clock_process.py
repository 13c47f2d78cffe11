"""A worker process that the clock keeps busy: `python -m tests.fleet.clock_process ADDRESS POINT:N`.

It dies by SIGKILL the Nth time that it comes to a point: `intended`, where the schedule says which instant is
about to be started; `created`, where the run exists and the schedule was not moved on. N 0: never.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections import Counter
from typing import Any

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.runs.schedules.schedule import read
from holdfast.store.protocols import Store
from holdfast.types.schedule import ScheduleRow

SETTINGS = RunSettings(lease_ttl=1.0, lease_margin=0.2, poll=0.05)


def ticks() -> Flow:
    flow = Flow("ticks", effect="pure")

    async def tick(s: Any) -> dict[str, Any]:
        return {}

    flow.node(id="tick")(tick)
    return flow


def arm(store: Store, point: str, nth: int) -> None:
    put, passed = store.put_schedule, Counter[str]()

    def reach(name: str) -> None:
        passed[name] += 1
        if name == point and passed[name] == nth:
            os.kill(os.getpid(), signal.SIGKILL)

    async def armed(row: ScheduleRow, *, expect: int | None = None) -> ScheduleRow | None:
        if read(row).standing.firing is None:
            reach("created")
            return await put(row, expect=expect)
        written = await put(row, expect=expect)
        reach("intended")
        return written

    store.put_schedule = armed


async def serve(address: str, point: str, nth: int) -> None:
    async with Holdfast(address, settings=SETTINGS) as hf:
        arm(await hf.open(), point, nth)
        async with Worker(ticks(), on=hf, poll=0.1):
            print("serving", flush=True)
            await asyncio.sleep(60)


if __name__ == "__main__":
    place, _, number = sys.argv[2].partition(":")
    asyncio.run(serve(sys.argv[1], place, int(number)))
