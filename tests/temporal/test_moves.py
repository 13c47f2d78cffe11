"""Runs that wait move to the cluster and back; a failed run continues where it was."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError

from holdfast import Context, Flow, Holdfast, Worker
from holdfast.app.flow import wait_until_idle
from holdfast.attractor.runner import Runner
from holdfast.cli.commands.promote import _move, move_runs
from holdfast.documents.program import program_for
from holdfast.errors import RunBusyError, RunEndedError
from holdfast.runs.driver.settings import RunSettings
from holdfast.runs.engine_moves import move_from_engine, move_to_engine
from holdfast.store.rows import RunRow
from holdfast.testing.crashpoints import EXIT_CODE, environment
from holdfast.types.ids import RunId
from holdfast.types.outbox import ENGINE_START, OutboxState
from holdfast.types.status import RunStatus
from tests.api.documents import REFUND
from tests.deadlines import HANG
from tests.documents.run import compiled, site_of
from tests.services import temporal
from tests.temporal import shop
from tests.temporal.runs import assert_same, engine_of, run, settled, workers
from tests.temporal.test_kill import EFFECTS, Place, answered, exited
from tests.temporal.test_pipelines import GATED
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


async def parked(hf: Holdfast, run_id: str) -> RunRow:
    """When no built-in worker has it in memory any more."""
    service = await hf.service()
    async with asyncio.timeout(HANG):
        while (row := await service.get(run_id)).worker is not None or row.status is RunStatus.running:
            await service.store.wait_change(0.05)
    return row


async def closed(hf: Holdfast, run_id: str) -> WorkflowExecutionStatus | None:
    handle = (await (await engine_of(hf)).client()).get_workflow_handle(run_id)
    async with asyncio.timeout(HANG):
        with pytest.raises(WorkflowFailureError) as ended:
            await handle.result()
    cause = ended.value.cause.cause if ended.value.cause is not None else None
    assert getattr(cause, "type", None) == "RunEndedError"
    return (await handle.describe()).status


@pytest.mark.covers("TD-38")
async def test_parked_run_moves_to_the_cluster_and_back_and_is_continued_there(
    sqlite: str, engine: str, caplog: pytest.LogCaptureFixture
) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine="") as plain, Holdfast(sqlite, engine=engine) as hf:
        first = await run(flow, plain)
        second = await run(flow, plain)
        service, name = await plain.service(), (await engine_of(hf)).name
        async with workers(hf, flow):
            for waiting in (first, second):
                row = await parked(plain, waiting.run_id)
                assert row.status is RunStatus.pending_input
                moved = await move_to_engine(service, row, name, by="user:dana")
                assert (moved.worker, moved.status) == (name, RunStatus.pending_input)
                assert await move_to_engine(service, moved, name) == moved
            await service.answer(first.holds[0].id, "yes")
            done = await settled(flow, hf, first.run_id)
            assert dict(done.state) == {"answer": "yes", "fetched": 5, "sees": 1}
            await assert_same(hf, first.run_id)
            events = [e.data for e in await service.events(first.run_id) if e.type == "run.moved"]
            assert events == [{"from": "", "to": name, "by": "user:dana"}]

            back = await move_from_engine(service, await service.get(second.run_id))
            assert (back.worker, back.ready_at, back.status) == (None, None, RunStatus.pending_input)
            assert await closed(hf, second.run_id) is WorkflowExecutionStatus.FAILED
            # That was to be expected: no traceback.
            assert "Completing activity as failed" not in caplog.text
        # Without any worker of the cluster.
        await service.answer(second.holds[0].id, "no")
        async with Worker(flow, on=plain):
            done = await settled(flow, plain, second.run_id)
        assert dict(done.state) == {"answer": "no", "fetched": 5, "sees": 1}
        again = await service.replay(second.run_id)
        assert again.same, again.difference


@pytest.mark.covers("TD-38", "TD-39")
async def test_documents_and_pipelines_move_to_workers_that_know_none_of_them(
    sqlite: str, engine: str, tmp_path: Path
) -> None:
    async with Holdfast(sqlite, engine="") as plain, Holdfast(sqlite, engine=engine) as hf:
        service, ids = await plain.service(), list[RunId]()
        gated = await Runner(plain, logs_root=tmp_path / "logs").run(GATED)
        async with Worker(on=plain):
            document = program_for(compiled(REFUND), site_of())
            made, _ = await service.create(document, {"amount": 5})
            ids = [RunId(gated.run_id), made.id]
            await wait_until_idle(service, made.id, None)
        rows = [await parked(plain, each) for each in ids]
        # What the command does.
        moved = [await _move(service, row, await engine_of(hf), dry_run=False) for row in rows]
        assert [each.refused for each in moved] == [None, None]
        service = await hf.service()
        async with workers(hf), asyncio.timeout(HANG):
            for each in ids:
                [hold] = await service.holds(each)
                await service.answer(hold.id, hold.options[0].id)
                await wait_until_idle(service, each, None)
                assert (await service.get(each)).status is RunStatus.completed
                await assert_same(hf, each)


@pytest.mark.covers("TD-38")
async def test_run_that_waits_for_a_time_keeps_it_in_both_directions(sqlite: str, engine: str) -> None:
    flow = Flow("naps", effect="pure")

    @flow.script
    async def nap(state: Any, ctx: Context) -> dict[str, Any]:
        await ctx.sleep(state["seconds"])
        return {"rested": True}

    settings = RunSettings(hot_timer=0.0)
    async with Holdfast(sqlite, engine="", settings=settings) as plain, Holdfast(sqlite, engine=engine) as hf:
        service, name = await plain.service(), (await engine_of(hf)).name
        ids, rows = list[str](), list[RunRow]()
        async with Worker(flow, on=plain):
            # The short one last: the worker is to stop before it wakes.
            for seconds in (3600, 5):
                ids.insert(0, await flow.submit({"seconds": seconds}, on=plain))
                rows.append(await _sleeps(plain, ids[0]))
        wake = await service.store.wake_times([RunId(ids[1])])
        async with workers(hf, flow):
            for row in rows:
                await move_to_engine(service, row, name)
            # The store wakes neither of them: the cluster does.
            assert await service.store.wake_times([RunId(each) for each in ids]) == {}
            assert (await settled(flow, hf, ids[0])).state["rested"]
            await assert_same(hf, ids[0])
            await move_from_engine(service, await service.get(ids[1]))
            assert await service.store.wake_times([RunId(ids[1])]) == wake
            assert await closed(hf, ids[1]) is WorkflowExecutionStatus.FAILED


async def _sleeps(hf: Holdfast, run_id: str) -> RunRow:
    service = await hf.service()
    async with asyncio.timeout(HANG):
        while (row := await service.get(run_id)).status is not RunStatus.waiting or row.worker is not None:
            await service.store.wait_change(0.05)
    return row


@pytest.mark.covers("TD-38")
async def test_run_that_is_running_or_has_ended_is_not_moved(
    sqlite: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, begun, go = Flow("busy", effect="pure"), asyncio.Event(), asyncio.Event()

    @flow.node
    async def work(state: Any) -> None:
        begun.set()
        await go.wait()

    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        service, name = await hf.service(), (await engine_of(hf)).name
        run_id = await flow.submit({}, on=hf)
        async with asyncio.timeout(HANG):
            await begun.wait()
        row = await service.get(run_id)
        with pytest.raises(RunBusyError, match="only a run that waits is moved"):
            await move_from_engine(service, row)
        assert (await service.get(run_id)).worker == name
        await move_runs(sqlite, "none", [], dry_run=True, json=False)
        said = capsys.readouterr()
        assert "0 runs would move" in said.out
        assert "1 run more: running" in said.err
        go.set()
        assert (await settled(flow, hf, run_id)).completed
        with pytest.raises(RunEndedError, match="it cannot be moved"):
            await move_to_engine(service, await service.get(run_id), name)


@pytest.mark.covers("TD-38")
async def test_run_that_is_moved_in_again_gets_a_workflow_of_its_own(sqlite: str, engine: str) -> None:
    """Also while that of the first time is still open: it is not taken for the new one."""
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf:
        service, name = await hf.service(), (await engine_of(hf)).name
        async with workers(hf, flow):
            waiting = await run(flow, hf)
        # No worker: the first workflow stays open while the run goes out and in.
        out = await move_from_engine(service, await service.get(waiting.run_id))
        again = await move_to_engine(service, out, name)
        assert again.term == 3
        await service.answer(waiting.holds[0].id, "yes")
        async with workers(hf, flow):
            done = await settled(flow, hf, waiting.run_id)
            assert dict(done.state) == {"answer": "yes", "fetched": 5, "sees": 1}
            await assert_same(hf, waiting.run_id)


@pytest.mark.covers("TD-38")
async def test_failed_run_that_is_resumed_continues_on_the_cluster(sqlite: str, engine: str) -> None:
    flow, broken = Flow("fragile"), [True]

    @flow.node(effect="external")
    async def first(state: Any) -> dict[str, Any]:
        return {"first": state.get("first", 0) + 1}

    @flow.node(effect="pure")
    async def second(state: Any) -> dict[str, Any]:
        if broken[0]:
            raise ValueError("not yet")
        return {"second": True}

    flow.chain("first", "second")
    async with Holdfast(sqlite, engine=engine) as hf, Holdfast(sqlite, engine="") as plain, workers(hf, flow):
        failed = await run(flow, hf)
        assert failed.status is RunStatus.failed
        name = (await engine_of(hf)).name
        broken[0] = False
        # Asked for by a process that knows no engine.
        row = await (await plain.service()).request_resume(failed.run_id)
        assert (row.worker, row.term) == (name, 2)
        done = await settled(flow, hf, failed.run_id)
        assert dict(done.state) == {"first": 1, "second": True}, done
        await assert_same(hf, failed.run_id)
        assert await (await hf.service()).store.documents("default", "engine_run") == []


def promote(place: Place, *words: str, crash: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "holdfast", "promote", place.store, *words]
    env = {**os.environ, **(crash or {})}
    with (place.folder / "log").open("ab") as log:
        return subprocess.Popen(command, env=env, stdout=log, stderr=log)


async def moved_with_a_crash(place: Place, point: str) -> None:
    """In and out again; the command dies at this point each time, and is repeated."""
    async with Holdfast(place.store, engine="") as hf:
        os.environ["SHOP_LEDGER"] = str(place.ledger)
        service, flow = await hf.service(), shop.flow
        async with Worker(flow, on=hf):
            waiting = await run(flow, hf)
            run_id = RunId(waiting.run_id)
            before = await parked(hf, run_id)
        for address, term in ((place.engine, 2), ("none", 3)):
            words = ("--engine", address, "--run", run_id)
            assert await exited(promote(place, *words, crash=environment(point))) == EXIT_CODE
            row = await service.get(run_id)
            moved = point == "after_move"
            orders = await service.store.list_outbox(topic=ENGINE_START, state=OutboxState.waiting)
            # All of it or nothing: an owner, and its order.
            assert row.term == before.term + (term - 1 if moved else term - 2)
            assert len(orders) == row.term - before.term
            assert (row.worker is not None) is ((address != "none") is moved)
            assert await exited(promote(place, *words)) == 0, (place.folder / "log").read_text()
            row = await service.get(run_id)
            assert (row.worker is None, row.term) == (address == "none", before.term + term - 1)
        assert await exited(promote(place, "--engine", place.engine)) == 0
        assert (await service.get(run_id)).worker is not None
        with place.worker():
            await answered(place, hf, run_id)
        assert (await service.get(run_id)).status is RunStatus.completed
        assert place.happened(run_id) == dict.fromkeys(EFFECTS, 1)


@pytest.mark.covers("TD-38")
async def test_command_that_dies_between_the_steps_leaves_one_owner(tmp_path: Path) -> None:
    engine = temporal.own().address("3s")
    for point in ("inside_move", "after_move"):
        await moved_with_a_crash(Place(tmp_path / point, engine), point)
