"""A process whose store fails under it: `python -m tests.crash.outage ADDRESS WORLD FLOW RUN HOW`.

`full`: its files cannot grow for a while (a limit of the process: no root, no small disk is needed).
`disk`: the disk that its database is on has no room for a while; it must be a small one of its own.
`locked`: somebody else holds the write lock for longer than the store waits for it.
`briefly`: for less long than that.
It says what it met, mends it, goes on, and lives the run to its end.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
from contextlib import suppress
from pathlib import Path

import apsw

from holdfast import Holdfast, StoreError
from holdfast.runs.recorder import recorder
from holdfast.store.sql.sqlite import writer
from tests.crash import flows, life
from tests.crash.victim import say
from tests.crash.world import World

# As in life, only shorter.
recorder.RETRY_DELAYS = (0.02, 0.05, 0.1, 0.2)  # type: ignore[assignment]
# The log has to grow for each commit: what is reserved would last for the whole run.
writer.LEAST_RESERVED = writer.MOST_RESERVED = 1 << 10


async def main(address: str, name: str, run: str, how: str) -> None:
    async with Holdfast(f"{address}?busy_timeout=0.2", settings=life.SETTINGS) as hf:
        service = await hf.service()
        await life.begin(hf, service, name, run, say)
        breaks, mends = FAULTS[how](address.removeprefix("sqlite:"))
        flows.WORLD = _Breaking(flows.WORLD.file, breaks)  # in the middle of the run, at its second effect
        try:
            await flows.FLOWS[name].resume(run, on=hf)
            say("unbroken")
        except StoreError as error:
            row = await service.get(run)
            say("met", error.code, error.retryable, row.head)
        mends()
        await life.live(hf, name, run, say, asyncio.sleep)


class _Breaking(World):
    def __init__(self, file: Path, breaks: object) -> None:
        super().__init__(file)
        self._breaks = breaks
        self._count = 0

    def happens(self, name: str, run: str, **facts: object) -> None:
        super().happens(name, run, **facts)
        self._count += 1
        if self._count == 2:
            self._breaks()  # type: ignore[operator]


def full(database: str) -> tuple[object, object]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    wal = Path(database + "-wal")

    def breaks() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size, hard))

    return breaks, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def briefly(database: str) -> tuple[object, object]:
    breaks, mends = locked(database)

    def breaks_for_a_while() -> None:
        breaks()  # type: ignore[operator]
        threading.Timer(0.4, mends).start()  # type: ignore[arg-type]

    return breaks_for_a_while, lambda: None


def locked(database: str) -> tuple[object, object]:
    other = apsw.Connection(database)

    def mends() -> None:
        other.execute("ROLLBACK")
        other.close()

    return lambda: other.execute("BEGIN EXCLUSIVE"), mends


def disk(database: str) -> tuple[object, object]:
    ballast = Path(database).with_name("ballast")

    def breaks() -> None:
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 16, 1 << 10):
                with suppress(OSError):
                    while True:
                        file.write(b"\0" * size)

    return breaks, ballast.unlink


FAULTS = {"full": full, "locked": locked, "briefly": briefly, "disk": disk}


if __name__ == "__main__":
    flows.settle_in(World(Path(sys.argv[2])))
    asyncio.run(main(sys.argv[1], *sys.argv[3:6]))
