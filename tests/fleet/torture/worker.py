"""A worker process: `python -m tests.fleet.torture.worker ADDRESS NAME`. Serves until SIGTERM.

Its wall clock is wrong (`TORTURE_SKEW`), and it does not know.
"""

from __future__ import annotations

from tests.fleet.torture import clocks

clocks.deceive()

import asyncio  # noqa: E402
import logging  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402

from holdfast import Holdfast, Retention, RunSettings, StoreError, Worker  # noqa: E402
from tests.fleet.torture import stacks  # noqa: E402
from tests.fleet.torture.flows import FLOWS  # noqa: E402

SETTINGS = RunSettings(
    lease_ttl=2.0, lease_margin=0.4, hot_timer=0.3, poll=0.2, grace=3.0, retention=Retention(keep=None)
)


async def serve(address: str) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    stacks.tell_when_asked()
    async with Holdfast(address, settings=SETTINGS) as hf:
        worker = Worker(*FLOWS.values(), on=hf, concurrency=6, poll=0.2, hot_hold=0.5, max_recoveries=25)
        while not stopping.is_set():
            try:
                await worker.arrive()
                break
            except StoreError as error:
                logging.getLogger("torture").warning("the store cannot be opened yet: %s", error)
                await asyncio.sleep(0.3)
        async with worker:
            print("serving", flush=True)
            await stopping.wait()


if __name__ == "__main__":
    logging.basicConfig(
        level=logging.INFO, format=f"%(levelname)s {sys.argv[2]} %(name)s: %(message)s", stream=sys.stderr
    )
    asyncio.run(serve(sys.argv[1]))
