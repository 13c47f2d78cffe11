"""What a worker tells Prometheus: a page that its own parser reads, with figures that are true."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast import Flow, Holdfast, RunSettings, Worker
from holdfast.errors import KeyMissingError, StoreError, StoreUnavailableError
from holdfast.integrations.prometheus import Metrics
from holdfast.runs.driver.runtime import Runtime
from tests.fleet.workers import Crew, fetch, settings, until
from tests.services import postgres
from tests.services.pgcluster import free_port

pytestmark = [pytest.mark.anyio, pytest.mark.covers("FLEET-OPS-01")]

Page = dict[str, dict[tuple[str, ...], float]]
ROOT = Path(__file__).parents[2]
KINDS = {"counter", "gauge", "histogram"}


def read(text: str) -> Page:
    """Sample name -> values of its labels -> value."""
    page: Page = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            page.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return page


async def page_of(port: int) -> Page:
    code, text = await fetch(port, "/metrics")
    assert code == 200
    return read(text)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is asked with each look."""
    monkeypatch.setattr("holdfast.integrations.prometheus.page.FRESH", 0.0)


async def test_worker_process_tells_what_it_did_and_how_the_fleet_is(tmp_path: Path, address: str) -> None:
    port = free_port()
    with Crew(tmp_path, address) as crew:
        async with Holdfast(address, settings=RunSettings(**settings())) as hf:
            service = await hf.service()
            jobs, asks = crew.flow("jobs").program(), crew.flow("asks").program()
            for number in range(3):
                await service.create(jobs, {"job": str(number)}, lane="fast")
            await service.create(asks, {}, lane="slow")
            await service.create(jobs, {"job": "x"}, lane="nobody")
            await crew.start("--metrics", str(port), "--lane", "fast", "--lane", "slow", "--hot", "0s")
            await until(lambda: len(crew.ledger("act")) == 3, "the three are done")

            async def all_is_told() -> bool:
                page = await page_of(port)
                held = page.get("holdfast_pending_holds", {}).get(("under_1h",))
                running = page.get("holdfast_running_runs", {})
                done = page.get("holdfast_runs_ended_total", {}).get(("completed",))
                return (held, done, sum(running.values())) == (1, 3, 0)

            await until(all_is_told, "three ended, one asks")
            page = await page_of(port)
    assert page["holdfast_runs_ended_total"] == {("completed",): 3}
    assert page["holdfast_runs_claimed_total"] == {("fast",): 3, ("slow",): 1}
    assert page["holdfast_steps_settled_total"][("success",)] >= 6
    assert page["holdfast_records_settled_total"][()] >= 6
    assert page["holdfast_settle_duration_seconds_count"][()] >= 1  # many share a commit
    assert 0 < page["holdfast_settle_duration_seconds_sum"][()] < 30
    assert page["holdfast_claim_latency_seconds_count"][("fast",)] == 3
    assert page["holdfast_claim_latency_seconds_sum"][("fast",)] > 0
    assert page["holdfast_backlog_runs"] == {("fast",): 0, ("slow",): 0, ("nobody",): 1}
    assert page["holdfast_backlog_oldest_seconds"][("nobody",)] > 0
    assert page["holdfast_in_line_runs"] == {("fast",): 0, ("slow",): 0, ("nobody",): 0}
    assert page["holdfast_runs"][("pending_input",)] == 1
    assert page["holdfast_workers"] == {("working",): 1, ("draining",): 0, ("silent",): 0}
    assert page["holdfast_worker_concurrency"] == {(): 10}
    assert page["holdfast_store_up"] == {(): 1}
    assert page["holdfast_leases_lost_total"] == {(): 0}
    assert "process_resident_memory_bytes" in page
    assert not any(name.endswith("_created") for name in page)


async def test_names_follow_the_rules_of_prometheus_and_are_documented(address: str) -> None:
    async with Holdfast(address) as hf, Worker(on=hf, lanes=["main"], probe=(metrics := Metrics("0"))):
        _, text = await fetch(metrics.port, "/metrics")
    ours = [f for f in text_string_to_metric_families(text) if f.name.startswith("holdfast_")]
    assert len(ours) > 20
    documented = (ROOT / "docs/reference/metrics.md").read_text()
    for family in ours:
        assert re.fullmatch(r"holdfast_[a-z_]+", family.name)
        if family.name.endswith("_created"):
            continue
        assert family.type in KINDS
        assert family.documentation.endswith(".")
        assert not family.name.endswith(("_total", "_count", "_sum", "_millis", "_ms"))
        shown = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{shown}`" in documented, shown
        for sample in family.samples:
            assert set(sample.labels) <= {
                "lane", "status", "outcome", "age", "sweep", "state", "code", "version", "le"
            }  # fmt: skip
    # Those of a cluster are exported by its workers only (tests/temporal).
    listed = set(re.findall(r"^\| `(holdfast_(?!engine_)\w+)`", documented, re.MULTILINE))
    names = {f.name for f in ours} | {f"{f.name}_total" for f in ours if f.type == "counter"}
    assert listed <= names


async def test_lost_lease_is_counted(address: str, quick: None) -> None:
    """Another worker takes the run while this one is in the middle of it."""
    waiting = asyncio.Event()
    flow = Flow("waits", effect="pure")

    @flow.node(effect="read")
    async def wait(s: dict) -> dict:
        await waiting.wait()
        return {}

    async with Holdfast(address, settings=RunSettings(**settings())) as hf:
        service = await hf.service()
        async with Worker(flow, on=hf, poll=0.1, probe=(metrics := Metrics("0"))):
            row, _ = await service.create(flow.program(), {})

            async def is_running() -> bool:
                return (await service.get(row.id)).worker is not None

            await until(is_running, "it is taken")
            store = await hf.open()
            schema = address.partition("schema=")[2]
            await asyncio.to_thread(
                postgres.execute, f"UPDATE {schema}.runs SET term = term + 1, worker = 'other'"
            )

            async def is_counted() -> bool:
                return (await page_of(metrics.port))["holdfast_leases_lost_total"][()] == 1

            await until(is_counted, "the loss is counted")
            assert (await store.get_run(row.id)).worker == "other"


async def test_what_the_store_refuses_is_no_outage(address: str, quick: None) -> None:
    async with Holdfast(address) as hf:
        store = await hf.open()
        refusals: list[StoreError] = [KeyMissingError("a key is gone."), StoreUnavailableError("it is away.")]

        async def refused(**_given: object):
            raise refusals[0]

        store.fleet_figures = refused
        async with Worker(on=hf, poll=60, probe=(metrics := Metrics("0"))):
            counts: list[float] = []
            while refusals:
                page = await page_of(metrics.port)
                counts.append(page["holdfast_store_outages_total"][()])
                code = refusals.pop(0).code
                assert page["holdfast_store_errors_total"][(code,)] == 1
    assert counts == [0, 1]


async def test_worker_that_nobody_measures_has_nothing_of_it(address: str) -> None:
    async with Holdfast(address) as hf, Worker(on=hf) as worker:
        assert worker._worker is not None
        runtime: Runtime = worker._worker.runtime
        assert runtime.observer is None
        assert type(worker._worker.store).__name__ == "PostgresStore"
        assert runtime.recorder.store is runtime.store is worker._worker.store


async def test_store_is_not_asked_more_often_than_it_has_news(address: str) -> None:
    asked = 0
    async with Holdfast(address) as hf:
        store = await hf.open()
        figures = store.fleet_figures

        async def counted(**given: tuple[int, ...]):
            nonlocal asked
            asked += 1
            return await figures(**given)

        store.fleet_figures = counted
        async with Worker(on=hf, probe=(metrics := Metrics("0"))):
            await asyncio.gather(*(page_of(metrics.port) for _ in range(5)))
            own = read((await fetch(metrics.port, "/metrics/worker"))[1])
            whole = await page_of(metrics.port)
    assert asked == 1
    assert "holdfast_worker_concurrency" in own
    assert "holdfast_dead_runs" in whole.keys() - own.keys()
