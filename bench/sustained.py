"""How many steps a second one PostgreSQL server and its workers keep up, with retention on.

    python -m bench.sustained --seconds 600 --workers 2

Each worker also starts the runs that it is busy with, ten steps each, and says once a second how many steps
its nodes have done. Ended runs are deleted after half a minute, so that the database reaches its size and
stays there. A tenth of the time is a window; the last window is compared with the second, as the first is
still short of rows to delete. Not a row of `make bench`: it takes ten minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from time import perf_counter
from typing import Any

import msgspec

from bench.flows import Count
from bench.server import ABSENT, database, server
from holdfast import Flow, Holdfast, Worker
from holdfast.runs.driver.settings import RunSettings
from holdfast.types.retention import Retention

STEPS = 10
KEPT = "30s"
SWEEP = 5.0  # seconds between two sweeps of the retention
AT_ONCE = 200
WINDOWS = 10


class SustainedMeasurement(msgspec.Struct):
    """`windows`: steps a second in each tenth of the time."""

    windows: list[float]
    stored: int  # bytes of the database at the end
    left: int  # rows of runs at the end

    @property
    def ratio(self) -> float:
        return self.windows[-1] / self.windows[1]


def measured(on: str, *, workers: int, seconds: float) -> SustainedMeasurement:
    with database(on) as address, _workers(address, workers) as counts:
        began, marks = perf_counter(), [sum(counts)]
        for nth in range(1, WINDOWS + 1):
            threading.Event().wait(max(0.0, began + nth * seconds / WINDOWS - perf_counter()))
            marks.append(sum(counts))
        windows = [(late - early) * WINDOWS / seconds for early, late in pairwise(marks)]
        stored, left = asyncio.run(_of_server(address))
        return SustainedMeasurement(windows, stored, left)


@contextmanager
def _workers(address: str, count: int) -> Iterator[list[int]]:
    """How many steps each has done, kept up to date."""
    # One creates the tables before the others open them.
    asyncio.run(_made(address))
    command = [sys.executable, "-m", "bench.sustained", "--serve", address]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    counts = [0] * count

    def read(nth: int, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout:
            for text in process.stdout:
                counts[nth] = int(text)

    readers = [threading.Thread(target=read, args=each, daemon=True) for each in enumerate(processes)]
    for reader in readers:
        reader.start()
    try:
        while not all(counts):
            if any(process.poll() is not None for process in processes):
                raise RuntimeError("a worker of the benchmark ended")
            threading.Event().wait(0.1)
        yield counts
    finally:
        for process in processes:
            process.kill()
            process.wait()
        for reader in readers:
            reader.join()


async def _made(address: str) -> None:
    async with Holdfast(address) as hf:
        await hf.open()


async def _of_server(address: str) -> tuple[int, int]:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    driver: Any = asyncpg
    connection = await driver.connect(address)
    found = await connection.fetchrow(
        "SELECT pg_database_size(current_database()), (SELECT count(*) FROM holdfast.runs)"
    )
    await connection.close()
    return int(found[0]), int(found[1])


class _Load:
    """The runs of one worker."""

    def __init__(self) -> None:
        self.steps = 0
        self.flow = Flow("sustained", state=Count, effect="pure", retention=Retention(older=KEPT))
        self.flow.chain(*(self.flow.node(id=f"n{number}")(self._step) for number in range(STEPS)))

    async def _step(self, state: Count) -> dict[str, Any]:
        self.steps += 1
        return {"n": state.n + 1}

    async def start_runs(self, hf: Holdfast) -> None:
        """As many as are needed so that the worker always finds some."""
        service, program, created = await hf.service(), self.flow.program(), 0
        while True:
            if created * STEPS - self.steps > 2 * AT_ONCE * STEPS:
                await asyncio.sleep(0.005)
                continue
            await asyncio.gather(*(service.create(program, {"limit": 0}) for _ in range(50)))
            created += 50

    async def tell(self) -> None:
        while True:
            print(self.steps, flush=True)
            await asyncio.sleep(1)


async def serve(address: str) -> None:
    load = _Load()
    async with Holdfast(address, settings=RunSettings(retention_every=SWEEP, feed_kept=60)) as hf:
        worker = Worker(load.flow, on=hf, concurrency=AT_ONCE)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(load.start_runs(hf))
            tasks.create_task(load.tell())
            tasks.create_task(worker.serve())


def main() -> int:
    words = argparse.ArgumentParser(description="Steps a second that one PostgreSQL server keeps up")
    words.add_argument("--seconds", type=float, default=600.0)
    words.add_argument("--workers", type=int, default=2)
    words.add_argument("--serve", metavar="ADDRESS")
    given = words.parse_args()
    if given.serve:
        asyncio.run(serve(given.serve))
        return 0
    with server() as found:
        if found is None:
            print(ABSENT, file=sys.stderr)
            return 1
        took = measured(found, workers=given.workers, seconds=given.seconds)
    for nth, speed in enumerate(took.windows, 1):
        print(f"window {nth:>2}: {speed:,.0f} steps/s")
    print(f"last by second: {took.ratio:.2f}; stored {took.stored / 1e6:,.0f} MB, {took.left:,} runs left")
    return 0


if __name__ == "__main__":
    sys.exit(main())
