"""Two worker processes on one store, and a person who answers what they ask."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

from holdfast import Holdfast
from holdfast.runs.service import RunService
from holdfast.types.status import ENDED
from tests.crash import flows, life
from tests.crash.judge import ROOT, Facts, judge
from tests.crash.stores import address_on
from tests.crash.world import World


class Fleet:
    def __init__(self, folder: Path, *, linger: float, store: str = "sqlite") -> None:
        self.address, self.world = address_on(store, folder), World(folder / "world.jsonl")
        self._complaints = folder / "complaints.txt"
        self.runs: dict[str, str] = {}
        self.doubts = 0
        self._linger = linger
        self.workers: list[subprocess.Popen[str]] = []

    async def create(self, service: RunService, names: list[str]) -> None:
        for name in names:
            run = str(uuid4())
            self.runs[run] = name
            await service.create(flows.FLOWS[name].program(), flows.GIVEN[name], run_id=run)

    def start(self, count: int = 2) -> None:
        environment = {**os.environ, "VICTIM_LINGER": str(self._linger)}
        command = [sys.executable, "-m", "tests.crash.serve", self.address, self.world.file]
        # Complaints go to a file: nobody would empty a pipe while the workers serve.
        with self._complaints.open("a") as log:
            fresh = [
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=ROOT, env=environment
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
            worker.communicate(timeout=20)
        complaints = self._complaints.read_text()[-3000:]
        assert {worker.returncode for worker in self.workers} == {0}, complaints
        assert "Traceback" not in complaints, complaints

    async def open_runs(self, service: RunService) -> list[str]:
        rows = [await service.get(run) for run in self.runs]
        return [row.id for row in rows if row.status not in ENDED]

    async def until_done(self, service: RunService, *, answering: bool = True, within: float = 40) -> None:
        deadline = time.monotonic() + within
        while left := await self.open_runs(service):
            assert time.monotonic() < deadline, [await service.get(run) for run in left]
            if answering:
                await self.answer(service)
            await asyncio.sleep(0.02)

    async def answer(self, service: RunService) -> None:
        for hold in await service.holds():
            self.doubts += hold.type == "in_doubt"
            await life.answer(service, hold, _say_nothing)

    async def judge(self, service: RunService) -> None:
        for run, name in self.runs.items():
            facts: Facts = []
            await life.report(service, name, run, lambda *a, facts=facts, **more: facts.append([*a, more]))
            judge(name, run, facts, self.world)

    def house(self) -> Holdfast:
        flows.settle_in(self.world)
        return Holdfast(self.address, settings=life.SETTINGS)


def _say_nothing(*_fact: object) -> None:
    pass
