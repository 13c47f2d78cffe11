"""Metrics, the command line's exporters, and a process that has none of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.metrics import Histogram, MeterProvider
from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
from opentelemetry.sdk.metrics.view import View

from holdfast import Flow, Holdfast
from holdfast.integrations.otel import metrics, trace_id_of
from holdfast.integrations.otel.private_names import record_all
from holdfast.testing.clock import FakeClock
from holdfast.testing.human import Human
from tests.deadlines import HANG
from tests.integrations.otel.flows import broken, order, steps

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.covers("TOOL-OTEL-03")
@pytest.mark.anyio
async def test_runs_steps_retries_holds_and_settles_are_counted_and_timed(exported):
    clock = FakeClock(auto=True)
    async with exported.watch(Holdfast("memory:", clock=clock)) as hf:
        human = Human(hf, clock)
        human.answers("yes", to="approve", within="2h")
        human.answers("no", to="settle")
        await human.runs(order, {})
        await broken.run({}, on=hf)
    assert exported.metric("holdfast.runs.started") == {("order",): 1, ("broken",): 1}
    assert exported.metric("holdfast.runs.resumed") == {("order",): 2}
    assert exported.metric("holdfast.runs.ended") == {("order", "completed"): 1, ("broken", "failed"): 1}
    assert exported.metric("holdfast.runs.active") == {("order",): 0, ("broken",): 0}
    assert exported.metric("holdfast.steps")[("order", "quote", "success")] == 1
    assert exported.metric("holdfast.steps")[("broken", "fall", "fail")] == 1
    assert exported.metric("holdfast.step.duration")[("order", "quote", "success")] == 1
    assert exported.metric("holdfast.retries") == {("order", "quote"): 1}
    assert set(exported.metric("holdfast.holds.opened").values()) == {1}
    resolved = exported.metric("holdfast.holds.resolved")
    assert {key[1] for key in resolved} == {"answered"}
    assert sum(resolved.values()) == 2
    assert sum(exported.metric("holdfast.hold.wait").values()) == 2
    commits = exported.metric("holdfast.commits")[()]
    assert exported.metric("holdfast.settle.duration")[()] == commits > 3
    assert exported.metric("holdfast.records")[()] >= commits


@pytest.mark.covers("TOOL-OTEL-03")
@pytest.mark.anyio
async def test_metrics_of_all_instances_are_complete_when_a_reader_collects(exported):
    async with (
        exported.watch(Holdfast("memory:")) as first,
        exported.watch(Holdfast("memory:")) as second,
    ):
        for hf in (first, second):
            (await steps.run({}, on=hf)).expect()
        # The instances stay open: what they have exported in the background is there for each collection.
        async with asyncio.timeout(HANG):
            while exported.metric("holdfast.runs.ended") != {("steps", "completed"): 2}:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        counted = exported.metric("holdfast.steps")
        assert counted
        assert set(counted.values()) == {2}
        assert exported.metric("holdfast.step.duration") == counted
        assert exported.metric("holdfast.runs.active") == {("steps",): 0}
        # Collected once, and not again with the next collection.
        assert exported.metric("holdfast.steps") == counted


@pytest.mark.anyio
async def test_measured_values_are_handed_over_before_they_are_many(exported, monkeypatch):
    monkeypatch.setattr(metrics, "MOST_HELD", 2)
    recorded: list[int] = []
    monkeypatch.setattr(metrics, "record_all", lambda _, values, at: recorded.append(len(values)))
    async with exported.watch(Holdfast("memory:")) as hf:
        (await steps.run({}, on=hf)).expect()
        (await steps.run({}, on=hf)).expect()
        async with asyncio.timeout(HANG):
            while not recorded:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


class _Points:
    """What a reader collects of a histogram that got some values."""

    def __init__(self, temporality: AggregationTemporality, views: list[View]) -> None:
        self.reader = InMemoryMetricReader({Histogram: temporality})
        self.meters = MeterProvider([self.reader], views=views, shutdown_on_exit=False)
        self.histogram = self.meters.get_meter("any").create_histogram(
            "h", explicit_bucket_boundaries_advisory=[1, 2]
        )

    def collected(self) -> list[tuple[Any, ...]]:
        data = self.reader.get_metrics_data()
        return [
            (point.attributes, point.count, point.sum, point.min, point.max, list(point.bucket_counts))
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        ]


@pytest.mark.parametrize("temporality", [AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])
@pytest.mark.parametrize("kept", [None, {"a"}])
def test_values_recorded_together_are_those_recorded_one_by_one(temporality, kept, monkeypatch):
    views = [] if kept is None else [View(instrument_name="h", attribute_keys=kept)]
    together, one_by_one = (_Points(temporality, views) for _ in range(2))
    singly: list[float] = []
    record = together.histogram.record
    monkeypatch.setattr(
        together.histogram, "record", lambda value, at: (singly.append(value), record(value, at))
    )
    for values in ([0.5, 1.5, 9.0], [0.25], [3.0, 3.0]):
        record_all(together.histogram, values, {"a": "x", "b": "y"})
        for value in values:
            one_by_one.histogram.record(value, {"a": "x", "b": "y"})
        found = together.collected()
        assert len(found) == 1
        assert found == one_by_one.collected()
    # The short way is still possible with this version of the SDK, where no view is in its way.
    assert bool(singly) is (kept is not None)


@pytest.mark.covers("TOOL-OTEL-03")
@pytest.mark.anyio
async def test_lost_lease_is_counted_when_another_worker_takes_the_run(exported):
    async with exported.watch(Holdfast("memory:")) as hf:
        service = await hf.service()
        program = steps.program()
        started = await service.start(program, {})
        store = await hf.open()
        claim, pos = started
        await store.park(claim.lease, status="resumable", inbox_seen=0, ready_at=0)
        with pytest.raises(Exception, match="lost the lease"):
            await service.runtime.drive(claim, pos)
    assert exported.metric("holdfast.leases.lost") == {("steps",): 1}
    assert exported.span("advance steps").attributes["holdfast.ended"] == "lost"


@pytest.mark.covers("TOOL-OTEL-03")
@pytest.mark.anyio
async def test_hold_is_reported_as_expired_when_nobody_answers_in_time(exported):
    clock = FakeClock(auto=True)
    asking = Flow("asking", effect="read")
    asking.start(asking.hold("approve", prompt="?", options=["yes"], timeout="2d"))
    async with exported.watch(Holdfast("memory:", clock=clock)) as hf:
        human = Human(hf, clock)
        result = await human.runs(asking, {})
        clock.advance(days=3)
        result = await human.resumes(asking, result.run_id)
        assert result.failed
    assert {key[1] for key in exported.metric("holdfast.holds.resolved")} == {"expired"}
    assert exported.metric("holdfast.runs.ended") == {("asking", "failed"): 1}


class _Collector(HTTPServer):
    received: dict[str, list[bytes]]


@pytest.fixture
def collector() -> Iterator[_Collector]:
    """What speaks OTLP over HTTP, as a collector does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.received.setdefault(self.path, []).append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = _Collector(("127.0.0.1", 0), Handler)
    server.received = {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def _holdfast(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HOLDFAST_"))}
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *words],
        cwd=cwd,
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=HANG,
        check=False,
    )


@pytest.mark.covers("TOOL-OTEL-01", "TOOL-OTEL-03")
def test_command_line_exports_to_a_collector_when_the_environment_says_so(collector, tmp_path):
    where = f"http://127.0.0.1:{collector.server_port}"
    said = _holdfast(
        "run", str(EXAMPLES / "draft.py"), "--json", cwd=tmp_path,
        HOLDFAST_OTEL="1", OTEL_EXPORTER_OTLP_ENDPOINT=where, OTEL_SERVICE_NAME="drafts",
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    run = json.loads(said.stdout)["id"]
    spans = [
        span
        for body in collector.received["/v1/traces"]
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    names = [span.name for span in spans]
    assert "run draft" in names
    assert names.count("write") == names.count("review") > 1
    assert {span.trace_id.hex() for span in spans} == {f"{trace_id_of(run):032x}"}
    body = ExportMetricsServiceRequest.FromString(collector.received["/v1/metrics"][-1])
    metrics = {m.name for r in body.resource_metrics for s in r.scope_metrics for m in s.metrics}
    assert {"holdfast.runs.ended", "holdfast.steps", "holdfast.settle.duration"} <= metrics
    service = {a.key: a.value.string_value for a in body.resource_metrics[0].resource.attributes}
    assert service["service.name"] == "drafts"


def _names(collector: _Collector) -> list[str]:
    return [
        span.name
        for body in collector.received.get("/v1/traces", [])
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_worker_of_the_command_line_exports_before_it_leaves(collector, tmp_path):
    where = f"http://127.0.0.1:{collector.server_port}"
    asked = '{"order_id": "A", "customer": "c", "amount": 200}'
    place = str(EXAMPLES / "refund.py")
    run = json.loads(_holdfast("run", place, "--input", asked, "--json", cwd=tmp_path).stdout)["id"]
    assert _holdfast("answer", run, "approve", cwd=tmp_path).returncode == 0
    said = _holdfast(
        "worker", place, "--until-idle", cwd=tmp_path, HOLDFAST_OTEL="1", OTEL_EXPORTER_OTLP_ENDPOINT=where
    )
    assert said.returncode == 0, said.stderr
    assert {"approve", "pay", "run refund", "advance refund"} <= set(_names(collector))


_WITHOUT = """
import sys
from holdfast.cli.main import run
code = run(["run", sys.argv[1], "--json"])
loaded = [name for name in sys.modules if name.startswith(("opentelemetry", "google.protobuf"))]
assert not loaded, loaded
assert not any(name.startswith("holdfast.integrations") for name in sys.modules)
sys.exit(code)
"""

_ABSENT = """
import sys
from holdfast.cli.main import run
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
sys.exit(run(["run", sys.argv[1], "--json"]))
"""


def _python(code: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "HOLDFAST_"))}
    return subprocess.run(
        [sys.executable, "-c", code, str(EXAMPLES / "draft.py")],
        cwd=cwd, env=clean | environment, capture_output=True, text=True, timeout=HANG, check=False,
    )  # fmt: skip


@pytest.mark.covers("TOOL-OTEL-04")
def test_nothing_of_opentelemetry_is_imported_when_nobody_asks_for_it(tmp_path):
    said = _python(_WITHOUT, tmp_path)
    assert said.returncode == 0, said.stderr


@pytest.mark.covers("TOOL-OTEL-04")
def test_flows_run_and_the_extra_is_named_when_it_is_not_installed(tmp_path):
    assert _python(_ABSENT, tmp_path).returncode == 0
    said = _python(_ABSENT, tmp_path, HOLDFAST_OTEL="1")
    assert said.returncode == 2
    assert "holdfast-flow[otel]" in said.stderr
    assert "Traceback" not in said.stderr


@pytest.mark.covers("TOOL-OTEL-04")
@pytest.mark.anyio
async def test_runtime_writes_to_the_store_itself_when_it_is_not_instrumented():
    async with Holdfast("memory:") as hf:
        service = await hf.service()
        assert service.runtime.observer is None
        assert service.runtime.recorder.store is service.store


def test_exporter_that_there_is_not_is_refused(tmp_path):
    said = _holdfast(
        "run", str(EXAMPLES / "draft.py"), cwd=tmp_path, HOLDFAST_OTEL="1", OTEL_TRACES_EXPORTER="fax"
    )
    assert said.returncode == 2
    assert "otlp, console or none" in said.stderr


def test_command_that_only_looks_sends_nothing(collector, tmp_path):
    assert _holdfast("run", str(EXAMPLES / "draft.py"), cwd=tmp_path).returncode == 0
    where = f"http://127.0.0.1:{collector.server_port}"
    said = _holdfast("runs", cwd=tmp_path, HOLDFAST_OTEL="1", OTEL_EXPORTER_OTLP_ENDPOINT=where)
    assert said.returncode == 0
    assert collector.received == {}
