"""Entities: the next run starts when the code of the last one has really ended, however that was stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from holdfast import Context, Flow, Holdfast, Result, RunSettings, Worker
from holdfast.api.schemas.admin import worker_wire
from holdfast.cli.commands.doctor import _findings  # pyright: ignore[reportPrivateUsage]
from holdfast.cli.top.figures import as_json, take_snapshot
from holdfast.cli.top.screen import lines
from holdfast.store.rows import ClaimRequest
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.flows.conftest import address_of
from tests.flows.places import Place
from tests.handlers.processes import jobs
from tests.services import prefork

pytestmark = pytest.mark.anyio

QUICK = RunSettings(poll=0.02, grace=0.01, lease_ttl=30.0)


class Gate:
    """Code that is inside until it is let out; whoever stops it is noted."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.let_out = threading.Event()
        self.cancelled = False
        self.most = self.now = 0

    def work(self) -> None:
        with self._counted():
            self.let_out.wait(HANG)

    async def work_on(self) -> None:
        """Async, and it does not end when it is cancelled."""
        with self._counted():
            while not self.let_out.is_set():
                try:
                    await asyncio.sleep(0.01)
                except asyncio.CancelledError:
                    self.cancelled = True

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self.now += 1
        self.most = max(self.most, self.now)
        self.inside.set()
        try:
            yield
        finally:
            self.now -= 1


def flow_of(way: str, gate: Gate) -> Flow:
    flow = Flow("case", effect="read")

    def plain() -> None:
        gate.work()

    def with_context(ctx: Context) -> None:
        gate.work()

    async def coroutine() -> None:
        await gate.work_on()

    async def substep(ctx: Context) -> None:
        await ctx.step("work", gate.work)

    code: dict[str, Callable[..., Any]] = {
        "thread": plain,
        "timeout": plain,
        "context": with_context,
        "async": coroutine,
        "substep": substep,
    }
    more = {"timeout": 0.05} if way == "timeout" else {}
    flow.node(id="work", **more)(code[way])
    return flow


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def next_run(hf: Holdfast, run: str | None = None) -> list[str]:
    want = ClaimRequest(worker="next", ttl=30_000_000, limit=9, run=None if run is None else RunId(run))
    claims = await (await hf.open()).claim(want)
    return [claim.run.id for claim in claims]


async def started(hf: Holdfast, flow: Flow, gate: Gate) -> tuple[str, str, asyncio.Task[Result]]:
    """The first run of an entity, whose code is inside, and the next one, which waits."""
    await hf.deploy("cases", flow, mode="entity")
    first, second = [f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
    run = flow.run({}, on=hf, deployment="cases", instance_key="a", run_id=first)
    driving = asyncio.create_task(run)
    await until(gate.inside.is_set)
    await flow.submit({}, on=hf, deployment="cases", instance_key="a", run_id=second)
    return first, second, driving


def is_stopped(runtime: Any, run: str) -> bool:
    """Whether the code was told to end; without a driver the run has ended although its code has not."""
    driver = runtime.drivers.get(run)
    if driver is None:
        return True
    session = driver.session
    return bool(session.left_running) or session.pos.cancelling is not None


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
@pytest.mark.parametrize("way", ["thread", "context", "async", "substep", "timeout"])
async def test_next_run_of_an_entity_starts_when_code_that_was_stopped_has_ended(
    place: Place, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()
    flow = flow_of(way, gate)
    hf = await place.hf(QUICK)
    first, second, driving = await started(hf, flow, gate)
    service = await hf.service()

    def named() -> list[str]:
        return [
            line for line in caplog.messages if "(node work)" in line and "entity 'a' stays locked" in line
        ]

    if way != "timeout":
        await service.cancel(first)
    await until(lambda: gate.cancelled or is_stopped(service.runtime, first))

    for _ in range(20):
        assert await next_run(hf) == []
        await asyncio.sleep(0)
    assert (await service.get(first)).status is RunStatus.running
    # What blocks the entity is named: it may never return.
    if way != "async":
        await until(lambda: bool(named()))

    gate.let_out.set()
    result = await asyncio.wait_for(driving, HANG)
    assert result.status == ("failed" if way == "timeout" else "cancelled")
    assert await next_run(hf) == [second]
    assert gate.most == 1


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_run_whose_process_stops_keeps_its_entity_until_its_lease_has_expired(place: Place) -> None:
    gate = Gate()
    hf, other = await place.hf(QUICK), await place.hf(QUICK)
    first, second, driving = await started(hf, flow_of("thread", gate), gate)
    await (await hf.service()).cancel(first)
    driving.cancel()
    with suppress(asyncio.CancelledError):
        await driving

    assert await next_run(other) == []
    place.lapse()
    gate.let_out.set()
    store = await other.open()
    await store.reclaim(limit=9, max_recoveries=9)
    # It is the first that goes on, to its own end; only then the second.
    assert await next_run(other, run=second) == []
    assert await next_run(other, run=first) == [first]


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_process_of_a_node_has_ended_before_the_next_run_of_its_entity_starts(tmp_path: Path) -> None:
    async with Holdfast(f"sqlite:{tmp_path / 'h.db'}", settings=QUICK) as hf:
        await hf.deploy("cases", jobs, mode="entity")
        given = {"folder": str(tmp_path), "way": "hangs"}
        run = jobs.run(given, on=hf, deployment="cases", instance_key="a")
        driving = asyncio.create_task(run)
        await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
        pid = int((tmp_path / "pid").read_text())
        second = await jobs.submit({}, on=hf, deployment="cases", instance_key="a")
        (live,) = (await hf.service()).runtime.drivers
        await (await hf.service()).cancel(live)
        while not (found := await next_run(hf)):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert found == [second]
        assert (await driving).status == "cancelled"


# ---------------------------------------------------------------------- a worker that is killed
LEASE = 1.0


def noting(folder: Path) -> Flow:
    """Each call writes a line when it begins and when it ends, with the number of its process."""
    flow = Flow("case", effect="read")

    @flow.node(id="work")
    def work() -> None:
        with (folder / "trace").open("a") as trace:
            print(f"in {os.getpid()}", file=trace, flush=True)
            while not (folder / "go").exists():
                threading.Event().wait(0.01)
            print(f"out {os.getpid()}", file=trace, flush=True)

    return flow


def serve(address: str, folder: str) -> None:
    """In a process of its own, until it is killed."""

    async def main() -> None:
        settings = RunSettings(poll=0.02, lease_ttl=LEASE)
        async with Holdfast(address, settings=settings) as hf, Worker(noting(Path(folder)), on=hf):
            await asyncio.Event().wait()

    asyncio.run(main())


@pytest.mark.covers("PLATFORM-ENTITY-01", "CP-3")
@pytest.mark.parametrize(
    "store",
    ["sqlite", *[pytest.param(name, marks=pytest.mark.soak) for name in ("postgres", "mariadb")]],
)
async def test_next_run_of_an_entity_starts_after_a_killed_worker_s_lease(store: str, tmp_path: Path) -> None:
    address = await address_of(store, tmp_path)
    flow, trace = noting(tmp_path), tmp_path / "trace"
    async with Holdfast(address, settings=RunSettings(poll=0.02, lease_ttl=LEASE)) as hf:
        await hf.deploy("cases", flow, mode="entity")
        runs = [await flow.submit({}, on=hf, deployment="cases", instance_key="a") for _ in range(2)]
        process = prefork.started(serve, (address, str(tmp_path)), daemon=True)
        try:
            await until(lambda: trace.exists() and "in" in trace.read_text())
            await (await hf.service()).cancel(runs[0])
            assert await next_run(hf) == []
        finally:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        (tmp_path / "go").touch()
        async with Worker(flow, on=hf):
            ends = [await flow.result(run, on=hf, wait=60) for run in runs]
    assert [end.status for end in ends] == ["cancelled", "completed"]
    # The first was inside when its process was killed; the second alone after that.
    lines = [line.split()[0] for line in trace.read_text().splitlines()]
    assert lines == ["in", "in", "out"]


@pytest.mark.covers("PLATFORM-ENTITY-01")
async def test_doctor_and_top_name_an_entity_that_stays_taken(tmp_path: Path) -> None:
    gate, address = Gate(), f"sqlite:{tmp_path / 's.db'}"
    flow = flow_of("thread", gate)

    async def found() -> tuple[Any, Any]:
        doctor = {each.check: each async for each in _findings(address, deep=False)}
        return doctor["entities"], as_json(await take_snapshot(store))["workers"][0]["blocked_entities"]

    async with Holdfast(address, settings=QUICK) as hf:
        store = await hf.open()
        await hf.deploy("cases", flow, mode="entity")
        async with Worker(flow, on=hf, name="w-1") as worker:
            made = await worker._made()  # pyright: ignore[reportPrivateUsage]
            run = await flow.submit({}, on=hf, deployment="cases", instance_key="claim-7")
            await until(gate.inside.is_set)
            finding, blocked = await found()
            assert (finding.state, blocked) == ("ok", [])
            await (await hf.service()).cancel(run)
            await until(lambda: bool(made.runtime.blocked))
            await made.heartbeat.announce_draining()
            finding, blocked = await found()
            assert finding.state == "warn"
            (said,) = finding.about
            assert said.startswith(f"claim-7: run {run} (case, node work) on w-1, pid {os.getpid()} on ")
            assert [(each["entity"], each["run"]) for each in blocked] == [("claim-7", run)]
            (wire,) = [worker_wire(row, store.now()) for row in await store.workers()]
            assert [(each.entity, each.run, each.nodes) for each in wire.blocked_entities] == [
                ("claim-7", run, "work")
            ]
            shown = "\n".join(lines(await take_snapshot(store), 200))
            assert f"claim-7 taken by run {run[:8]} on w-1 for" in shown
            gate.let_out.set()
            await until(lambda: not made.runtime.blocked)
            await made.heartbeat.announce_draining()
            finding, blocked = await found()
            assert (finding.state, blocked) == ("ok", [])
