"""An instance with one flow that the clock starts, a worker, and a clock that is moved by hand."""

from __future__ import annotations

from typing import Any

from holdfast import Flow, Holdfast, Worker
from holdfast.runs.schedules.schedule import Schedule
from holdfast.runs.schedules.service import ScheduleService
from holdfast.store.rows import RunFilter, RunRow
from holdfast.testing.clock import FakeClock

NAME = "daily"


class Harness:
    """The flow asks a person where its input says `slow`: its run is under way until somebody answers."""

    def __init__(self, hf: Holdfast, clock: FakeClock) -> None:
        self.hf = hf
        self.clock = clock
        self.flow = Flow("report", effect="pure")
        self.flow.script(id="write")(self._write)
        self.worker = Worker(self.flow, on=hf)
        self.began: list[str] = []

    async def _write(self, s: dict[str, Any], ctx: Any) -> dict[str, Any]:
        if s["at"] not in self.began:
            self.began.append(s["at"])
        if s.get("slow"):
            await ctx.ask("Go on?", options=["yes"])
        return {}

    async def schedules(self) -> ScheduleService:
        return await self.hf.schedules()

    async def put(self, **plan: Any) -> Schedule:
        """The instant is told to the run, in its field `at`."""
        return await (await self.schedules()).put(NAME, self.flow, stamp="at", **plan)

    async def get(self) -> Schedule:
        return await (await self.schedules()).get(NAME)

    async def after(self, **time: float) -> list[str]:
        """Time passes, then the worker looks. The instants that runs were begun for by then, without date."""
        if time:
            self.clock.advance(**time)
        await self.worker.run_until_idle()
        return [at[11:16] for at in self.began]

    async def runs(self) -> list[RunRow]:
        """The oldest first."""
        return (await (await self.hf.service()).list(RunFilter(), limit=2000))[::-1]

    async def answer_all(self) -> None:
        holds = await self.hf.holds()
        for row in await (await self.hf.service()).holds():
            await holds.answer(row.id, "yes", by="user:dana")
        await self.worker.run_until_idle()
