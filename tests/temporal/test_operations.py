"""What operators see of runs on a cluster: commands, `doctor`, `show`, metrics, search attributes."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("temporalio")

from holdfast import Context, Flow, Holdfast
from holdfast.cli.commands.doctor import run_doctor
from holdfast.cli.commands.engine import setup_engine
from holdfast.cli.commands.flows import check_flow
from holdfast.cli.commands.run import run_flow, start_detached
from holdfast.cli.commands.show import ShowOptions, show_moment
from holdfast.cli.main import Exit
from holdfast.cli.options.output import OutputOptions
from holdfast.drivers.temporal.address import parse_address
from holdfast.drivers.temporal.client import Cluster
from holdfast.drivers.temporal.report import report_of
from holdfast.drivers.temporal.search_attributes import FLOW, STATUS, TENANT, VERSION
from holdfast.errors import EngineError
from holdfast.reports.diagnosis import diagnose
from holdfast.runs.run_view import shown_run
from holdfast.store.rows import RunFilter
from tests.deadlines import HANG
from tests.services import temporal
from tests.services.s3 import free_ports
from tests.temporal.runs import engine_of, run, settled, workers
from tests.temporal.test_runs import asks

pytestmark = pytest.mark.anyio

SHOP = f"{Path(__file__).parent / 'shop.py'}:flow"


def found_in(printed: str) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in json.loads(printed)["findings"]}


@pytest.mark.covers("TD-40")
async def test_run_with_an_engine_goes_to_its_workers(
    sqlite: str,
    engine: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from tests.temporal.shop import flow

    monkeypatch.setenv("SHOP_LEDGER", str(tmp_path / "ledger"))
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        async with asyncio.timeout(HANG):
            code = await run_flow(SHOP, {}, {}, OutputOptions(sqlite, False, True, engine))
        assert code == Exit.run_waits
        shown = json.loads(capsys.readouterr().out)
        row = await (await hf.service()).get(shown["id"])
        assert row.worker == (await engine_of(hf)).name
        # Only created: the command that is shown is for the same engine.
        await start_detached(SHOP, {}, {}, OutputOptions(sqlite, False, False, engine))
        assert f"--engine '{engine}'" in capsys.readouterr().out.replace("\n", "")
        # The same from the environment.
        monkeypatch.setenv("HOLDFAST_ENGINE", engine)
        await start_detached(SHOP, {}, {}, OutputOptions(sqlite, False, True))
        made = json.loads(capsys.readouterr().out)
        assert (await settled(flow, hf, made["id"])).holds


@pytest.mark.covers("TD-41")
async def test_run_is_not_created_where_its_engine_is_away(sqlite: str) -> None:
    (port,) = free_ports(1)
    away = f"temporal://127.0.0.1:{port}/default"
    with pytest.raises(EngineError, match="does not answer"):
        await run_flow(SHOP, {}, {}, OutputOptions(sqlite, False, True, away))
    async with Holdfast(sqlite) as hf:
        assert await (await hf.service()).list(RunFilter()) == []


@pytest.mark.covers("TD-36", "TD-41")
async def test_missing_search_attributes_stop_a_worker_until_they_are_registered(
    sqlite: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server, namespace = temporal.own(), f"bare-{uuid.uuid4().hex[:8]}"
    server.cli("operator", "namespace", "create", "-n", namespace)
    address = f"temporal://{server.target}/{namespace}"
    with pytest.raises(EngineError, match="has no search attribute HoldfastTenant") as refused:
        await Cluster(parse_address(address)).connect()
    assert f"holdfast engine setup --engine temporal://localhost:{server.port}/{namespace}" in str(
        refused.value
    )
    assert await setup_engine(address, json=True) == Exit.ok
    assert len(json.loads(capsys.readouterr().out)["registered"]) == 4
    await setup_engine(address, json=False)
    assert "has everything" in capsys.readouterr().out
    async with asyncio.timeout(HANG):
        await Cluster(parse_address(address)).connect()


@pytest.mark.covers("TD-36")
async def test_runs_are_found_in_the_cluster_by_tenant_flow_and_status(sqlite: str, engine: str) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf, tenant="acme")
        client = await (await engine_of(hf)).cluster.connect()
        handle = client.get_workflow_handle(waiting.run_id)
        found = (await handle.describe()).typed_search_attributes
        values = [found[key] for key in (TENANT, FLOW, VERSION, STATUS)]
        assert values == ["acme", "asks", flow.program().version, "pending_input"]
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        await settled(flow, hf, waiting.run_id)
        await handle.result()
        assert (await handle.describe()).typed_search_attributes[STATUS] == "completed"


@pytest.mark.covers("TD-33", "TD-42")
async def test_queues_with_runs_and_no_worker_are_listed(
    sqlite: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf:
        created = await flow.submit({}, on=hf)
        service = await hf.service()
        report = await report_of(await engine_of(hf), await service.get(created))
        assert "no worker polls its task queue holdfast/default/asks@" in report.problem
        await run_doctor(store=sqlite, engine=engine, deep=False, json=True)
        found = found_in(capsys.readouterr().out)
        assert found["task queues"]["state"] == "warn"
        assert report.queue in found["task queues"]["about"][0]
        assert await check_flow(SHOP, None, engine=engine, store=sqlite, json=True) == Exit.ok
        notes = json.loads(capsys.readouterr().out)["engine"]
        assert any("mode='barrier' makes no difference" in note for note in notes)
        assert any(report.queue in note for note in notes)
        async with workers(hf, flow):
            assert (await settled(flow, hf, created)).holds
            await run_doctor(store=sqlite, engine=engine, deep=False, json=True)
            found = found_in(capsys.readouterr().out)
            assert [found[each]["state"] for each in ("engine", "task queues", "workflows")] == ["ok"] * 3


async def test_doctor_names_runs_of_engines_that_it_was_not_given(
    sqlite: str, engine: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Holdfast(sqlite, engine=engine) as hf:
        await asks().submit({}, on=hf)
    await run_doctor(store=sqlite, engine=None, deep=False, json=True)
    assert found_in(capsys.readouterr().out)["other engines"]["state"] == "warn"
    (port,) = free_ports(1)
    await run_doctor(store=sqlite, engine=f"temporal://127.0.0.1:{port}", deep=False, json=True)
    assert "does not answer" in found_in(capsys.readouterr().out)["engine"]["said"]


@pytest.mark.covers("TD-22")
async def test_error_of_ours_fails_the_workflow_task_and_doctor_lists_the_run(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, broken = asks(), True
    from holdfast.drivers.temporal import workflow_nodes as code

    apply_note = code.apply_note

    def fails(*given: Any) -> None:
        if broken:
            raise TypeError("planted")
        apply_note(*given)

    monkeypatch.setattr(code, "apply_note", fails)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        created = await flow.submit({}, on=hf)
        row = await (await hf.service()).get(created)
        async with asyncio.timeout(HANG):
            found = await report_of(await engine_of(hf), row)
            while "workflow task has failed" not in found.problem:
                found = await report_of(await engine_of(hf), row)
                await asyncio.sleep(0.2)
        await run_doctor(store=sqlite, engine=engine, deep=False, json=True)
        workflows = found_in(capsys.readouterr().out)["workflows"]
        assert workflows["state"] == "warn"
        assert created in workflows["about"][0]
        broken = False
        assert (await settled(flow, hf, created)).holds


@pytest.mark.covers("TD-43")
async def test_lag_of_the_store_is_named_and_measured(
    sqlite: str, engine: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from holdfast.drivers.temporal import projection

    flow, may_write = asks(), asyncio.Event()
    settle = projection.JournalProjector._settle

    async def slow(self: Any, *given: Any) -> bool:
        await may_write.wait()
        return await settle(self, *given)

    monkeypatch.setattr(projection.JournalProjector, "_settle", slow)
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow) as (serving,):
        created = await flow.submit({}, on=hf)
        figures = serving.figures
        async with asyncio.timeout(HANG):
            while not figures.lag_records():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        row = await (await hf.service()).get(created)
        assert figures.lag_seconds(serving.store.now()) > 0
        report = await report_of(await engine_of(hf), row)
        assert report.lag_records > 0
        monkeypatch.setenv("HOLDFAST_ENGINE", engine)
        await show_moment(created, None, ShowOptions(), store=sqlite, json=False, form=None)
        assert f"the store is {report.lag_records} records" in capsys.readouterr().out
        may_write.set()
        await settled(flow, hf, created)
        assert figures.lag_records() == 0
        assert (
            await report_of(await engine_of(hf), await (await hf.service()).get(created))
        ).lag_records == 0


@pytest.mark.covers("TD-43")
async def test_metrics_of_a_worker_have_the_figures_of_its_engine(sqlite: str, engine: str) -> None:
    pytest.importorskip("prometheus_client")
    from prometheus_client import generate_latest

    from holdfast import Worker
    from holdfast.integrations.prometheus import Metrics

    metrics, flow = Metrics("0"), asks()
    async with Holdfast(sqlite, engine=engine) as hf, Worker(flow, on=hf, probe=metrics):
        waiting = await run(flow, hf)
        page = generate_latest(metrics.registry).decode()
        # Counters grow from one look to the next.
        before = _sdk_count(page)
        await (await hf.service()).answer(waiting.holds[0].id, "yes")
        assert (await settled(flow, hf, waiting.run_id)).completed
        assert _sdk_count(generate_latest(metrics.registry).decode()) > before > 0
    assert "temporal_workflow_task_execution_latency_seconds_bucket{" in page
    assert "temporal_num_pollers{" in page
    for name in (
        "projection_lag_records", "projection_lag_seconds", "mail_undelivered", "history_events",
        "conflicts_total", "lost_activities_total",
    ):  # fmt: skip
        assert f"holdfast_engine_{name} 0" in page, name


def _sdk_count(page: str) -> float:
    """Of the workflow tasks that the worker has completed."""
    name = "temporal_workflow_task_queue_poll_succeed"
    lines = [line for line in page.splitlines() if line.startswith(f"{name}_total{{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def test_run_of_an_engine_is_not_migrated(sqlite: str, engine: str) -> None:
    flow, newer = asks(), Flow("asks")

    @newer.script
    async def script(state: Any, ctx: Context) -> dict[str, Any]:
        return {}

    @newer.node
    async def more(state: Any) -> dict[str, Any]:
        return {}

    newer.edge("script", "more")
    async with Holdfast(sqlite, engine=engine) as hf, workers(hf, flow):
        waiting = await run(flow, hf)
        service = await hf.service()
        (tried,) = await service.migrate(newer.program(), runs=[waiting.run_id], dry_run=True)
        (checked,) = await service.check(newer.program())
        (verdict,) = await service.migrate(newer.program(), runs=[waiting.run_id])
        assert not verdict.migrated
        assert all("fork it instead" in each.refused for each in (checked, tried, verdict))


async def test_run_is_shown_as_queued_until_its_workflow_takes_the_answer_in(
    sqlite: str, engine: str
) -> None:
    flow = asks()
    async with Holdfast(sqlite, engine=engine) as hf:
        async with workers(hf, flow):
            waiting = await run(flow, hf)
        service = await hf.service()
        assert not (await shown_run(service.store, await service.get(waiting.run_id))).answered
        await service.answer(waiting.holds[0].id, "yes")
        assert (await shown_run(service.store, await service.get(waiting.run_id))).answered
        async with workers(hf, flow):
            assert (await settled(flow, hf, waiting.run_id)).completed


async def test_diagnosis_says_why_the_cluster_does_not_advance_a_run(sqlite: str, engine: str) -> None:
    """A worker that has stopped counts as alive for a while, so none was here."""
    flow = Flow("gated", effect="pure")
    gate = flow.hold("gate", prompt="Go on?", options=["yes"])

    @flow.node
    async def later(state: Any) -> None: ...

    flow.edge(gate, later)
    async with Holdfast(sqlite, engine=engine) as hf:
        service = await hf.service()
        created = await flow.submit({}, on=hf)
        (hold,) = await service.holds(created)
        await service.answer(hold.id, "yes")
        found = await diagnose(service, created)
        assert "no worker polls its task queue holdfast/default/gated@" in found.why
        assert "holdfast doctor --engine temporal://" in found.todo[0]
    async with Holdfast(sqlite) as without:
        found = await diagnose(await without.service(), created)
        assert found.why.startswith("temporal://")
        assert "HOLDFAST_ENGINE=temporal://" in found.todo[0]
