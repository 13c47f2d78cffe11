"""Two worker processes on one store, and a person who answers what they ask."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from uuid import uuid4

import apsw

from holdfast import Holdfast
from holdfast.errors import HoldDecidedError
from holdfast.runs.service import RunService
from holdfast.types.status import ENDED
from tests.crash import flows, life
from tests.crash.judge import ROOT, Facts, judge
from tests.crash.stores import address_on
from tests.crash.world import World
from tests.deadlines import HANG
from tests.services import prefork


class Fleet:
    def __init__(self, folder: Path, *, linger: float, store: str = "sqlite", lease: float = 0.3) -> None:
        self.address, self.world = address_on(store, folder), World(folder / "world.jsonl")
        self._complaints = folder / "complaints.txt"
        self.runs: dict[str, str] = {}
        self.doubts = 0
        self._linger, self._lease = linger, lease
        self.workers: list[prefork.Child] = []

    async def create(self, service: RunService, names: list[str]) -> None:
        for name in names:
            run = str(uuid4())
            self.runs[run] = name
            await service.create(flows.FLOWS[name].program(), flows.GIVEN[name], run_id=run)

    def start(self, count: int = 2) -> None:
        environment = {**os.environ, "VICTIM_LINGER": str(self._linger), "VICTIM_LEASE": str(self._lease)}
        # Complaints go to a file: nobody would empty a pipe while the workers serve.
        with self._complaints.open("a") as log:
            fresh = [
                prefork.Child(
                    "tests.crash.serve",
                    [self.address, self.world.file],
                    cwd=ROOT,
                    env=environment,
                    stderr=log,
                )
                for _ in range(count)
            ]
        self.workers += fresh
        for worker in fresh:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "serving\n", self._complaints.read_text()

    def stop(self) -> None:
        """Each leaves in peace: nothing that happened to it was worth dying of."""
        for worker in self.workers:
            worker.send_signal(signal.SIGCONT)
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers:
            worker.communicate(timeout=HANG)
        complaints = self._complaints.read_text()[-3000:]
        assert {worker.returncode for worker in self.workers} == {0}, complaints
        assert "Traceback" not in complaints, complaints

    async def open_runs(self, service: RunService) -> list[str]:
        rows = [await service.get(run) for run in self.runs]
        return [row.id for row in rows if row.status not in ENDED]

    async def until_done(self, service: RunService, *, answering: bool = True, within: float = HANG) -> None:
        deadline = time.monotonic() + within
        while left := await self.open_runs(service):
            assert time.monotonic() < deadline, [await service.get(run) for run in left]
            if answering:
                await self.answer(service)
            await asyncio.sleep(0.02)

    async def answer(self, service: RunService) -> None:
        for hold in await service.holds():
            self.doubts += hold.type == "in_doubt"
            try:
                await life.answer(service, hold, _say_nothing)
            except HoldDecidedError:
                # Whoever lost the run told meanwhile how the effect ended: nobody has to be asked any more.
                gone = {row.id: row for row in await service.holds(hold.run, open_only=False)}[hold.id]
                assert (gone.type, gone.status) == ("in_doubt", "cancelled")

    async def put_to_sleep(self, worker: prefork.Child, service: RunService) -> None:
        """In the middle of its runs: one that has none would lose nothing by it."""
        async with asyncio.timeout(HANG):
            while True:
                worker.send_signal(signal.SIGSTOP)
                await asyncio.sleep(0.02)  # what it sent before arrives
                rows = [await service.get(run) for run in self.runs]
                mine = any(row.worker and f":{worker.pid}:" in f":{row.worker}:" for row in rows)
                if mine and self._is_writable():
                    return
                worker.send_signal(signal.SIGCONT)
                await asyncio.sleep(0.01)

    def _is_writable(self) -> bool:
        """A process that is stopped inside of a transaction keeps SQLite's lock, and no worker can write."""
        kind, _, path = self.address.partition(":")
        if kind != "sqlite":
            return True
        connection = apsw.Connection(path)
        try:
            connection.set_busy_timeout(200)
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        except apsw.BusyError:
            return False
        finally:
            connection.close()
        return True

    async def until_taken_over(self, service: RunService) -> None:
        async with asyncio.timeout(HANG):
            while True:
                if any([await service.store.deaths(run) for run in self.runs]):
                    return
                await asyncio.sleep(0.05)

    async def judge(self, service: RunService) -> None:
        for run, name in self.runs.items():
            facts: Facts = []
            await life.report(service, name, run, lambda *a, facts=facts, **more: facts.append([*a, more]))
            judge(name, run, facts, self.world)

    def hf(self) -> Holdfast:
        flows.settle_in(self.world)
        return Holdfast(self.address, settings=life.SETTINGS)


def _say_nothing(*_fact: object) -> None:
    pass
