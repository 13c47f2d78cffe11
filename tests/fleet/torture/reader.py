"""Whoever watches: `python -m tests.fleet.torture.reader ADDRESS FOLDER`, until SIGTERM and the end of what
there is to read.

It follows the feed over all runs and reads each run's events by number as the feed tells of them; and it has
streams open, one run after the other. Its connections are cut as well: it goes on by number.
"""

from __future__ import annotations

from tests.fleet.torture import clocks

clocks.deceive()

import asyncio  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402

import msgspec  # noqa: E402

from holdfast import Holdfast, StoreError  # noqa: E402
from holdfast.runs.service import RunService  # noqa: E402
from tests.fleet.torture import stacks  # noqa: E402
from tests.fleet.torture.history import Watched  # noqa: E402

log = logging.getLogger("torture")
STREAMS = 6
# For the test of the judge: after each interruption it reads the last event once more.
REPEATING = "repeating" in os.environ.get("TORTURE_SABOTAGE", "")


class Watcher:
    def __init__(self, service: RunService) -> None:
        self.service = service
        self.watched = Watched()
        self.position = 0
        self.broken = 0
        self.ending = False
        self.waiting: asyncio.Queue[str] = asyncio.Queue()

    async def follow(self) -> None:
        """The feed, and the events that it tells of; once more after the end was called for."""
        while True:
            ending = self.ending
            try:
                while await self.turn():
                    pass
                if ending:
                    return
            except StoreError as error:
                self.broken += 1
                log.info("reading goes on by number: %s", error)
            await asyncio.sleep(0.1)

    async def turn(self) -> bool:
        rows = await self.service.store.feed(after=self.position, limit=200)
        for position, run, first, last in rows:
            await self.read(run, last)
            self.watched.feed.append((run, first, last))
            self.position = position
        return bool(rows)

    async def read(self, run: str, upto: int) -> None:
        known = self.watched.events.get(run)
        if known is None:
            known = self.watched.events[run] = []
            self.waiting.put_nowait(run)
        while (known[-1][0] if known else 0) < upto:
            after = known[-1][0] if known else 0
            fresh = await self.service.events(run, after=after, limit=50)
            if not fresh:
                log.error("the feed tells of event %d of %s, which cannot be read", upto, run)
                return
            known += [(event.number, event.type) for event in fresh]

    async def stream(self) -> None:
        """One run after the other, to its end."""
        while True:
            run = await self.waiting.get()
            seen = self.watched.streams.setdefault(run, [])
            while True:
                try:
                    after = (seen[-1][0] if seen else 0) - (REPEATING and len(seen) > 0)
                    async for event in self.service.stream(run, after=after, poll=0.2):
                        seen.append((event.number, event.type))
                    break
                except StoreError as error:
                    self.broken += 1
                    log.info("a stream goes on by number: %s", error)
                    await asyncio.sleep(0.1)
            self.watched.streamed.append(run)


async def main(address: str, folder: Path) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    stacks.tell_when_asked()
    async with Holdfast(address) as hf:
        watcher = Watcher(await hf.service())
        following = asyncio.create_task(watcher.follow())
        streams = [asyncio.create_task(watcher.stream()) for _ in range(STREAMS)]
        print("serving", flush=True)
        await stopping.wait()
        watcher.ending = True
        await following
        for task in streams:
            task.cancel()
        watcher.watched.broken = watcher.broken
        (folder / "watched.json").write_bytes(msgspec.json.encode(watcher.watched))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s reader %(name)s: %(message)s")
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
