"""Row X: what a step takes of the processor when its run is traced, by the same run without that."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import process_time

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import DEFAULT_OFF, DEFAULT_ON, Sampler

from bench.counts import counted_calls
from bench.flows import line_of, ring_of
from bench.lines import Line
from bench.measure import Plan, folder, interleaved, line, ratios
from holdfast import Flow, Holdfast
from holdfast.integrations.otel import instrument

STEPS, RUNS = 100, 10


class _Discards(SpanExporter):
    """How spans are sent is the choice of the installation, and not measured here."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


async def processor_time(*, traced: bool, mode: str = "strict", sampler: Sampler = DEFAULT_ON) -> float:
    """Seconds of the processor for a step, in all threads, until all spans and metrics are with
    their exporters."""
    took = await _run(line_of(STEPS, mode), traced=traced, runs=RUNS, sampler=sampler)
    return took / (RUNS * STEPS)


async def _run(
    flow: Flow, *, traced: bool, runs: int = 1, steps: int = 0, sampler: Sampler = DEFAULT_ON
) -> float:
    """Seconds of the processor, without a first run that fills caches."""
    tracers = TracerProvider(sampler, shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_Discards()))
    reader = InMemoryMetricReader()
    meters = MeterProvider([reader], shutdown_on_exit=False)
    with folder() as place:
        hf = Holdfast(f"sqlite:{place}/h.db")
        if traced:
            instrument(hf, tracer_provider=tracers, meter_provider=meters)
        async with hf:
            (await flow.run({"limit": steps}, on=hf)).expect()
            began = process_time()
            for _ in range(runs):
                (await flow.run({"limit": steps}, on=hf)).expect()
        tracers.force_flush()
        reader.get_metrics_data()
        took = process_time() - began
    tracers.shutdown()
    meters.shutdown()
    return took


async def _by_the_sdk(rounds: int = 2000) -> float:
    """Seconds of the processor for what a program would call for a step, in the usual way: a span with its
    attributes, two histograms and a counter."""
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(_Discards()))
    meters = MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)
    tracer, meter = tracers.get_tracer("bench"), meters.get_meter("bench")
    took, settle = meter.create_histogram("took", "s"), meter.create_histogram("settle", "s")
    steps = meter.create_counter("steps")
    named = {f"holdfast.attribute{n}": "a text of some size" if n % 2 else n for n in range(12)}
    series = {"flow": "line", "node": "n", "outcome": "success"}
    began = process_time()
    for _ in range(rounds):
        tracer.start_span("step", attributes=named).end()
        took.record(0.001, series)
        settle.record(0.001)
        steps.add(1, series)
    tracers.force_flush()
    used = process_time() - began
    tracers.shutdown()
    meters.shutdown()
    return used / rounds


def row_x(plan: Plan) -> list[Line]:
    return asyncio.run(_row_x(plan))


async def _row_x(plan: Plan) -> list[Line]:
    found = await interleaved(
        plan.rounds,
        plain=lambda: processor_time(traced=False),
        traced=lambda: processor_time(traced=True),
    )
    # Steps that do nothing, and of which many are one commit: the least that telemetry can be compared with.
    least = await interleaved(
        plan.some,
        plain=lambda: processor_time(traced=False, mode="barrier"),
        traced=lambda: processor_time(traced=True, mode="barrier"),
        left_out=lambda: processor_time(traced=True, mode="barrier", sampler=DEFAULT_OFF),
        by_the_sdk=_by_the_sdk,
    )
    added = [traced - plain for traced, plain in zip(least["traced"], least["plain"], strict=True)]
    by_plain = ratios(found["traced"], found["plain"])
    return [
        line("X", "processor time of a step with telemetry, strict", by_plain, "x without", target="X-cpu"),
        line("X", "processor time of a step with telemetry, strict", found["traced"], "us", scale=1e6),
        line("X", "processor time of a step without, strict", found["plain"], "us", scale=1e6),
        line("X", "the same, barrier", ratios(least["traced"], least["plain"]), "x without"),
        line(
            "X",
            "what telemetry adds to a step, barrier",
            ratios(added, least["by_the_sdk"]),
            "x the same calls of the SDK",
            target="X-sdk",
        ),
        line(
            "X",
            "the same, barrier, traces that are not sampled",
            ratios(least["left_out"], least["plain"]),
            "x without",
        ),
    ]


def calls_of_telemetry(short: int = 20, long: int = 120) -> float:
    """Calls of Python and C functions for a step that telemetry makes, in all threads."""

    # One node that loops: the first step of a node also makes its series of metrics.
    flow = ring_of(1, "strict")

    def calls(steps: int, *, traced: bool) -> int:
        # Twice the same run: the first one is not left out of the count.
        with counted_calls() as counted:
            asyncio.run(_run(flow, traced=traced, steps=steps))
        return counted() // 2

    for traced in (False, True):
        asyncio.run(_run(flow, traced=traced, steps=short))
    steps = long - short
    plain = (calls(long, traced=False) - calls(short, traced=False)) / steps
    return (calls(long, traced=True) - calls(short, traced=True)) / steps - plain
