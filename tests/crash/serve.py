"""A worker process: `python -m tests.crash.serve ADDRESS WORLD`. Serves until SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from holdfast import Holdfast, Worker
from tests.crash import flows, life
from tests.crash.world import World


async def main(address: str) -> None:
    async with Holdfast(address, settings=life.SETTINGS) as hf:
        bound = int(os.environ.get("VICTIM_RECOVERIES", "50"))
        worker = Worker(
            *flows.FLOWS.values(),
            flows.deadly,
            on=hf,
            concurrency=3,
            poll=0.05,
            hot_hold=0.0,
            max_recoveries=bound,
        )
        stopping = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
        async with worker:
            print("serving", flush=True)
            await stopping.wait()


if __name__ == "__main__":
    flows.settle_in(World(Path(sys.argv[2])))
    asyncio.run(main(sys.argv[1]))
