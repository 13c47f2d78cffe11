"""A store moves while workers and clients use it: they are told, nothing acknowledged is left behind."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path
from typing import Any

import pytest

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import HoldfastError, RunBusyError, StoreMovedError
from holdfast.runs.transfer.promote import PromoteProgress, promote
from holdfast.store.rows import RunFilter
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.fleet.moved_store import shipping
from tests.fleet.serve import SETTINGS
from tests.fleet.test_promote_resume import counting

NEW_SCHEMA = True
pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
RUNS = 40
CODE = """
from pathlib import Path
from tests.fleet.test_promote_workers import parcels
flow = parcels(Path({ledger!r}))
"""


def moved_mark(ledger: Path) -> Path:
    return ledger.with_name("moved")


def parcels(ledger: Path) -> Flow:
    flow = Flow("parcels", effect="pure")

    async def check(s: Any) -> dict[str, Any]:
        # Long enough that a move begins before all are done, however slow the machine is.
        await asyncio.sleep(0 if moved_mark(ledger).exists() else 1.0)
        return {"checked": True}

    async def ship(s: Any, ctx: Any) -> dict[str, Any]:
        with ledger.open("a") as file:
            file.write(f"{ctx.idempotency_key}\n")
        return {"shipped": True}

    flow.node(id="check", effect="read")(check)
    flow.node(id="ship", effect="external", idempotency_key="{{order}}")(ship)
    flow.edge("check", "ship")
    return flow


async def start(code: Path, store: str, *more: str) -> Process:
    command = [sys.executable, "-m", "holdfast", "worker", f"{code}:flow", "--store", store, "--json", *more]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOLDFAST_LEASE": "3s"}
    process = await asyncio.create_subprocess_exec(
        *command, stdout=PIPE, stderr=PIPE, env=env, cwd=code.parent
    )
    assert process.stdout is not None
    assert await process.stdout.readline(), await process.communicate()
    return process


async def completed(store: Any) -> int:
    return len(await store.list_runs(RunFilter(status=(RunStatus.completed,)), after=None, limit=999))


@pytest.mark.covers("FLEET-PROM-01", "D-36-promote")
async def test_every_run_ends_once_when_its_store_moves_under_its_workers(
    tmp_path: Path, address: str
) -> None:
    source, ledger, code = f"sqlite:{tmp_path}/runs.db", tmp_path / "ledger", tmp_path / "shop.py"
    code.write_text(CODE.format(ledger=str(ledger)))
    flow = parcels(ledger)
    async with Holdfast(source, settings=SETTINGS) as hf:
        service = await hf.service()
        for n in range(RUNS):
            await service.create(flow.program(), {"order": f"o-{n}"})
        workers = await asyncio.gather(*(start(code, source, "--concurrency", "2") for _ in range(2)))
        async with asyncio.timeout(HANG):
            while await completed(service.store) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    steps: list[PromoteProgress] = []
    moved = await promote(source, address, wait=20, on_progress=steps.append)
    moved_mark(ledger).touch()
    assert all(each.same for each in moved.tables)
    for worker in workers:
        async with asyncio.timeout(HANG):
            _, said = await worker.communicate()
        assert worker.returncode == 4, said
        assert address.partition("?")[0].encode() in said, "it names the new store"
    async with Holdfast(address, settings=SETTINGS) as hf:
        store = (await hf.service()).store
        before = await completed(store)
        assert 3 <= before < RUNS, "some were left to do"
        worker = await start(code, address)
        async with asyncio.timeout(HANG):
            while await completed(store) < RUNS:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        worker.terminate()
        await worker.communicate()
        rows = await store.list_runs(RunFilter(), after=None, limit=999)
        assert {row.recoveries for row in rows} == {0}, "all were given back in peace"
    assert sorted(ledger.read_text().split()) == sorted(f"o-{n}" for n in range(RUNS)), "each effect once"


@pytest.mark.covers("FLEET-PROM-01")
@pytest.mark.parametrize("way", ["there", "back"])
async def test_what_was_acknowledged_is_in_the_target_and_nothing_is_after_the_seal(
    tmp_path: Path, address: str, way: str
) -> None:
    file = f"sqlite:{tmp_path}/runs.db"
    source, target = (file, address) if way == "there" else (address, file)
    flow = shipping(tmp_path / "ledger").program()
    listed: set[str] = set()

    async def client(number: int) -> HoldfastError:
        async with Holdfast(source) as hf:
            service = await hf.service()
            n = 0
            while True:
                try:
                    row, _ = await service.create(flow, {"order": f"{number}-{n}", "rest": 0})
                except HoldfastError as error:
                    return error
                listed.add(row.id)
                n += 1
                await asyncio.sleep(0.01)

    async with Holdfast(source) as hf:
        await hf.service()
    clients = [asyncio.create_task(client(n)) for n in range(4)]
    while len(listed) < 40:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    moved = await promote(source, target)
    ends = await asyncio.gather(*clients)
    assert {type(end) for end in ends} == {StoreMovedError}
    assert len(listed) == next(each.rows for each in moved.tables if each.table == "runs")
    async with Holdfast(target) as hf:
        rows = await (await hf.service()).store.list_runs(RunFilter(), after=None, limit=99_999)
        assert {row.id for row in rows} == listed


def slow(began: asyncio.Event) -> Flow:
    flow = Flow("slow", effect="read")

    @flow.node
    async def work(s: dict[str, Any]) -> dict[str, Any]:
        began.set()
        await asyncio.sleep(60 if s.get("here") == "old" else 0)
        return {"ended": True}

    return flow


QUICK = RunSettings(lease_ttl=0.9, lease_margin=0.2, poll=0.05)


@pytest.mark.covers("FLEET-PROM-01", "FLEET-PROM-02")
@pytest.mark.parametrize("way", ["there", pytest.param("back", marks=pytest.mark.soak)])
async def test_a_worker_that_does_not_end_is_waited_for_and_then_fenced_by_force(
    tmp_path: Path, address: str, way: str
) -> None:
    file = f"sqlite:{tmp_path}/runs.db"
    source, target = (file, address) if way == "there" else (address, file)
    began = asyncio.Event()
    flow = slow(began)
    async with Holdfast(source, settings=QUICK) as hf:
        service = await hf.service()
        row, _ = await service.create(flow.program(), {"here": "old"})
        worker = Worker(flow, on=hf, poll=0.05, grace=60)  # it lets its step end, however long that takes
        serving = asyncio.create_task(worker.serve())
        await began.wait()
        held: list[PromoteProgress] = []
        with pytest.raises(RunBusyError, match=r"still had runs of .* \(1\)\. Nothing was moved"):
            await promote(source, target, wait=1.0, on_progress=held.append)
        assert [each.runs for each in held[0].held] == [1]
        # As if nothing had happened to the store: the run is still with its worker, others can be started.
        assert (await service.get(row.id)).term == 1
        assert not serving.done()
        await service.create(flow.program(), {"here": "new"}, lane="elsewhere")

        await promote(source, target, force=True)
        async with asyncio.timeout(HANG):
            with pytest.raises(StoreMovedError):
                await serving
        await worker.close()
    async with Holdfast(target, settings=QUICK) as hf:
        store = (await hf.service()).store
        moved = await store.get_run(row.id)
        assert moved is not None
        assert (moved.term, moved.worker, moved.status, moved.recoveries) == (2, None, "resumable", 0)


@pytest.mark.covers("FLEET-PROM-01")
async def test_a_worker_on_the_target_waits_until_it_is_whole(tmp_path: Path, address: str) -> None:
    source = f"sqlite:{tmp_path}/runs.db"
    flow = slow(asyncio.Event())
    async with Holdfast(source) as hf:
        await (await hf.service()).create(flow.program(), {})

    class Stop(BaseException):
        pass

    def stop(step: PromoteProgress) -> None:
        if step.table == "feed":
            raise Stop

    with pytest.raises(Stop):
        await promote(source, address, on_progress=stop)
    async with Holdfast(address, settings=QUICK) as hf:
        store = (await hf.service()).store
        async with Worker(flow, on=hf, poll=0.05):
            await asyncio.sleep(0.5)
            assert await completed(store) == 0, "all rows of the run are there, and nobody gets it"
            await promote(source, address)
            async with asyncio.timeout(HANG):
                while not await completed(store):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)


@pytest.mark.covers("FLEET-PROM-01")
@pytest.mark.parametrize("way", ["there", pytest.param("back", marks=pytest.mark.soak)])
async def test_runs_that_are_held_hot_are_parked_at_once_when_their_store_moves(
    tmp_path: Path, address: str, way: str
) -> None:
    """A worker that finds nothing to claim hears of the move when it next says that it is there."""
    file = f"sqlite:{tmp_path}/runs.db"
    source, target = (file, address) if way == "there" else (address, file)
    flow = counting()
    async with Holdfast(source, settings=QUICK) as hf:
        service = await hf.service()
        row, _ = await service.create(flow.program(), {"n": 1})
        worker = Worker(flow, on=hf, poll=0.05, hot_hold=600)
        serving = asyncio.create_task(worker.serve())
        async with asyncio.timeout(HANG):
            while not await service.holds():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        await promote(source, target, wait=8)
        with pytest.raises(StoreMovedError):
            await serving
        await worker.close()
        with pytest.raises(StoreMovedError, match="was moved to"):
            await Worker(flow, on=hf, name="late").serve()
    async with Holdfast(target, settings=QUICK) as hf:
        service = await hf.service()
        assert (await service.get(row.id)).worker is None
        (hold,) = await service.holds()
        await service.answer(hold.id, "yes")
        assert (await flow.resume(row.id, on=hf)).completed
