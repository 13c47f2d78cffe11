"""The vendor's own tools work with such runs: its command line and its worker versioning."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("temporalio")

from temporalio.client import WorkflowFailureError

from holdfast import Flow, Holdfast, Worker
from holdfast.drivers.temporal import activities
from holdfast.drivers.temporal.reconcile import end_closed_runs
from holdfast.drivers.temporal.report import findings
from holdfast.runs.engine_report import DeploymentOptions
from holdfast.types.ids import RunId
from holdfast.types.status import RunStatus
from tests.deadlines import HANG
from tests.services import temporal
from tests.temporal.runs import assert_same, engine_of, run, settled, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio


@pytest.mark.covers("TD-49", "TD-27")
async def test_command_line_of_the_vendor_lists_shows_cancels_and_terminates(sqlite: str) -> None:
    flow, server = asks(), temporal.own()
    async with Holdfast(sqlite, engine=server.address()) as hf, workers(hf, flow):
        first, second = await asyncio.gather(run(flow, hf, tenant="v1"), run(flow, hf, tenant="v1"))
        query = 'HoldfastTenant="v1" and HoldfastStatus="pending_input"'
        async with asyncio.timeout(HANG):
            while True:
                listed = await asyncio.to_thread(
                    server.cli, "workflow", "list", "--query", query, "--output", "json"
                )
                found = {each["execution"]["workflowId"] for each in json.loads(listed)}
                if found == {first.run_id, second.run_id}:
                    break
                await asyncio.sleep(0.1)
        shown = await asyncio.to_thread(server.cli, "workflow", "show", "-w", first.run_id)
        assert "ActivityTaskCompleted" in shown
        await asyncio.to_thread(server.cli, "workflow", "cancel", "-w", first.run_id)
        client = await (await engine_of(hf)).client()
        with pytest.raises(WorkflowFailureError):
            await client.get_workflow_handle(first.run_id).result()
        assert (await settled(flow, hf, first.run_id)).status is RunStatus.cancelled
        await asyncio.to_thread(
            server.cli, "workflow", "terminate", "-w", second.run_id, "--reason", "by hand"
        )
        await end_closed_runs(await engine_of(hf), young=0)
        done = await settled(flow, hf, second.run_id)
        assert (done.status, done.error.code) == (RunStatus.failed, "engine_closed")
        assert "terminated" in done.error.message


@pytest.mark.covers("TD-49")
@pytest.mark.parametrize("command", ["pause", "reset"])
async def test_effect_that_runs_when_its_activity_is_paused_or_reset_is_not_cut(
    command: str, sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, server, begun, told = Flow("paused"), temporal.own(), asyncio.Event(), asyncio.Event()
    is_given_up = activities._is_given_up

    @flow.node
    async def pay(_state: Any) -> dict[str, Any]:
        begun.set()
        await told.wait()
        return {"paid": True}

    def asked() -> bool:
        asyncio.get_running_loop().call_soon(told.set)
        return is_given_up()

    monkeypatch.setattr(activities, "_is_given_up", asked)
    async with Holdfast(sqlite, engine=server.address()) as hf, workers(hf, flow):
        run_id = await flow.submit({}, on=hf)
        async with asyncio.timeout(HANG):
            await begun.wait()
        await asyncio.to_thread(server.cli, "activity", command, "-a", "1", "-w", run_id)
        done = await settled(flow, hf, run_id)
        assert (done.holds, dict(done.state)) == ([], {"paid": True})
        await assert_same(hf, run_id)


@pytest.mark.covers("TD-49", "TD-10")
async def test_run_that_was_reset_fails_as_a_conflict_and_nothing_is_written(sqlite: str) -> None:
    flow, server = asks(), temporal.own()
    async with Holdfast(sqlite, engine=server.address()) as hf, workers(hf, flow) as (serving,):
        waiting = await run(flow, hf)
        service, engine = await hf.service(), await engine_of(hf)
        before = await service.store.read(RunId(waiting.run_id))
        await asyncio.to_thread(
            server.cli, "workflow", "reset", "-w", waiting.run_id, "--type", "FirstWorkflowTask",
            "--reason", "by hand",
        )  # fmt: skip
        async with asyncio.timeout(HANG):
            while await engine.closed_by(RunId(waiting.run_id)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        assert await service.store.read(RunId(waiting.run_id)) == before
        assert serving.figures.conflicts == 1
        await end_closed_runs(engine, young=0)
        done = await settled(flow, hf, waiting.run_id)
        assert done.error.code == "projection_conflict"
        assert f"holdfast rewind {waiting.run_id}" in done.error.message
        found = {each.check: each async for each in findings(engine)}
        assert found["projection"].about == [f"{waiting.run_id} (asks)"]


@pytest.mark.covers("TD-35")
async def test_worker_of_a_deployment_serves_runs_of_its_current_build(sqlite: str) -> None:
    flow, server = asks(), temporal.own()
    options = DeploymentOptions(name="shop", build_id="b1")
    async with (
        Holdfast(sqlite, engine=server.address()) as hf,
        Worker(flow, on=hf, deployment=options) as _worker,
    ):
        setting = ("worker", "deployment", "set-current-version", "--deployment-name", "shop")
        async with asyncio.timeout(HANG):
            while True:
                try:
                    await asyncio.to_thread(server.cli, *setting, "--build-id", "b1", "--yes")
                    break
                except RuntimeError as error:
                    # The cluster knows a build when its worker has polled.
                    if "found" not in str(error).lower():
                        raise
                    await asyncio.sleep(0.2)
        waiting = await run(flow, hf)
        client = await (await engine_of(hf)).cluster.connect()
        info = (await client.get_workflow_handle(waiting.run_id).describe()).raw_description
        versioning = info.workflow_execution_info.versioning_info
        assert versioning.deployment_version.build_id == "b1"


@pytest.mark.covers("TD-44")
def test_absence_of_a_server_is_a_failure_where_it_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REQUIRE", "temporal")
    monkeypatch.setattr(temporal, "find_spec", lambda _name: None)
    with pytest.raises(pytest.fail.Exception, match="temporal is required"):
        temporal.binary()
    monkeypatch.setenv(temporal.VARIABLE, "temporal://db.example:7233/tests?tls=true")
    temporal.server.cache_clear()
    try:
        given = temporal.server()
    finally:
        temporal.server.cache_clear()
    assert given.address("2s") == "temporal://db.example:7233/tests?tls=true&heartbeat=2s"
