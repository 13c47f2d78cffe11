"""Histories replay with the vendor's check, and a journal that is another one is not overwritten."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer

from holdfast import Holdfast
from holdfast.drivers.temporal.payloads import PROTOCOL, RecordRegistry, Unwritten, Wire
from holdfast.drivers.temporal.projection import JournalProjector
from holdfast.drivers.temporal.workflow import RunWorkflow
from holdfast.drivers.temporal.workflow_runner import RUNNER
from holdfast.errors import ProjectionConflictError
from holdfast.types.ids import RunId
from tests.deadlines import HANG
from tests.temporal import golden_histories
from tests.temporal.runs import engine_of, run, settled, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


async def test_history_of_a_run_replays(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        assert (await settled(flow, hf, waiting.run_id)).completed
        client = await (await engine_of(hf)).client()
        history = await client.get_workflow_handle(waiting.run_id).fetch_history()
    await Replayer(workflows=[RunWorkflow], workflow_runner=RUNNER).replay_workflow(history)


@pytest.mark.covers("TD-10")
async def test_records_in_the_store_are_compared_and_never_replaced(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        service = await hf.service()
        row, wire = await service.get(waiting.run_id), Wire(RecordRegistry())
        program, records = flow.program(), await service.store.read(RunId(waiting.run_id))
        drafts = [wire.draft(record, wire.codec.decode(record)) for record in records[1:]]
        name = (await engine_of(hf)).name
        unwritten = Unwritten(row.id, row.key, row.tenant, row.flow, row.version, name, drafts)
        projector = JournalProjector(service.runtime)
        # The same ones again change nothing.
        await projector.append(program, row, unwritten)
        unwritten.drafts = [msgspec.structs.replace(drafts[0], outcome="fail"), *drafts[1:]]
        with pytest.raises(ProjectionConflictError, match="record 1 of the store is not what"):
            await projector.append(program, row, unwritten)
        assert await service.store.read(RunId(waiting.run_id)) == records


@pytest.mark.covers("TD-34")
@pytest.mark.parametrize("file", golden_histories.files(), ids=golden_histories.name)
async def test_golden_history_replays_to_the_same_decisions(file: Path) -> None:
    """If it does not: keep the old rule for runs that began with it (golden_histories.py says more)."""
    await golden_histories.replay(golden_histories.read(file))


@pytest.mark.covers("TD-34")
async def test_changed_decision_is_found_by_a_golden_history(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {file.parent.name for file in golden_histories.files()} == {f"v{n + 1}" for n in range(PROTOCOL)}
    assert len(golden_histories.files()) > 20
    history = golden_histories.read(golden_histories.FOLDER / "asks.json.gz")
    with monkeypatch.context() as planted:
        # Another activity is started.
        planted.setattr(RunWorkflow, "_carries_much", lambda _self: True)
        with pytest.raises(Exception, match=r"(?i)non-?determinis"):
            await golden_histories.replay(history)
    with monkeypatch.context() as planted:
        # The same activities, with other records.
        now = RunWorkflow._now
        planted.setattr(RunWorkflow, "_now", lambda self: now(self) + 1)
        with pytest.raises(AssertionError, match="given something else"):
            await golden_histories.replay(history)


@pytest.mark.covers("TD-34")
async def test_run_of_a_newer_protocol_is_left_until_a_worker_knows_it(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf:
        with monkeypatch.context() as newer:
            newer.setattr("holdfast.drivers.temporal.client.PROTOCOL", PROTOCOL + 1)
            created = await flow.submit({}, on=hf)
        handle = (await (await engine_of(hf)).client()).get_workflow_handle(created)
        async with workers(hf, flow):
            async with asyncio.timeout(HANG):
                while not (failed := _failed_tasks(await handle.fetch_history())):
                    await (await hf.service()).store.wait_change(0.1)
            assert f"(protocol {PROTOCOL + 1}; this worker knows {PROTOCOL})" in failed[0]
            assert (await (await hf.service()).get(created)).head == 0
            monkeypatch.setattr("holdfast.drivers.temporal.workflow.PROTOCOL", PROTOCOL + 1)
            waiting = await settled(flow, hf, created)
            await (await hf.service()).answer(waiting.holds[0].id, "yes")
            assert (await settled(flow, hf, created)).completed


def _failed_tasks(history: WorkflowHistory) -> list[str]:
    found = [
        event.workflow_task_failed_event_attributes.failure
        for event in history.events
        if event.HasField("workflow_task_failed_event_attributes")
    ]
    return [failure.encoded_attributes.data.decode() for failure in found]
