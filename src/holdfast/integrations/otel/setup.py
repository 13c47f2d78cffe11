"""Set-up: on the caller's Holdfast instance, or from the environment for the command line."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import TracerProvider, get_tracer_provider

from holdfast._version import __version__
from holdfast.app.holdfast import Holdfast
from holdfast.app.worker import Worker
from holdfast.config import is_on
from holdfast.errors import SettingsError
from holdfast.integrations.otel.exporter import OtelExporter
from holdfast.integrations.otel.metrics import TimedStore, metrics_of
from holdfast.integrations.otel.spans import Spans
from holdfast.runs.observer import combine_observers
from holdfast.runs.service import RunService

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

FLUSH_MILLIS = 3000
_PATIENCE = FLUSH_MILLIS / 1000  # of an exporter, unless OTEL_EXPORTER_OTLP_TIMEOUT is set


def instrument(
    hf: Holdfast | Worker,
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    messages: bool = False,
    capture_content: bool = False,
    finish: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Export traces and metrics of runs on this instance, and on its workers that have not started yet.

    Call it once per instance; a worker counts as its instance.

    Without providers the global ones of OpenTelemetry are used. `messages`: also export the texts of errors,
    which may contain data. `capture_content`: also what agents and their models and tools say to each other,
    with known secrets masked. `finish` is awaited when the instance or a worker closes.
    """
    tracer = (tracer_provider or get_tracer_provider()).get_tracer("holdfast", __version__)
    spans = Spans(tracer, messages=messages, capture=capture_content)
    measures = metrics_of(meter_provider or get_meter_provider(), __version__)

    def watch(service: RunService) -> None:
        runtime = service.runtime
        runtime.observer = combine_observers(
            runtime.observer, OtelExporter(service.store, spans, measures, finish)
        )
        # Around the recorder's store only: commits are what a run waits for.
        timed: Any = TimedStore(runtime.recorder.store, measures.committed)
        runtime.recorder.store = timed

    (hf.hf if isinstance(hf, Worker) else hf).on_service(watch)


def instrument_from_environment(hf: Holdfast) -> None:
    """With separate providers, configured by the standard variables of OpenTelemetry (OTEL_...)."""
    tracers, meters = _tracers(), _meters()

    # An unreachable collector is logged once, not at each of the exporter's attempts.
    logging.getLogger("opentelemetry").setLevel(logging.ERROR)

    async def finish() -> None:
        flushes = (tracers.force_flush, meters.force_flush)
        await asyncio.gather(*(asyncio.to_thread(flush, FLUSH_MILLIS) for flush in flushes))

    instrument(
        hf,
        tracer_provider=tracers,
        meter_provider=meters,
        messages=is_on("HOLDFAST_OTEL_MESSAGES"),
        capture_content=is_on("HOLDFAST_OTEL_CONTENT"),
        finish=finish,
    )


def _tracers() -> SdkTracerProvider:
    from opentelemetry.sdk.trace import TracerProvider as Provider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

    # Flushed when the instance closes: the exit of the process must not wait for a collector a second time.
    provider = Provider(resource=_resource(), shutdown_on_exit=False)
    kind = _exporter("OTEL_TRACES_EXPORTER")
    if kind == "console":
        provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
    elif kind == "otlp":
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(timeout=_patience())))
    return provider


def _meters() -> SdkMeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider as Provider
    from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, PeriodicExportingMetricReader

    kind = _exporter("OTEL_METRICS_EXPORTER")
    if kind == "console":
        readers = [PeriodicExportingMetricReader(ConsoleMetricExporter())]
    elif kind == "otlp":
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        readers = [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_patience()))]
    else:
        readers = []
    return Provider(readers, resource=_resource(), shutdown_on_exit=False)


# None lets the library read the variable itself.
def _patience() -> float | None:
    return None if os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT") else _PATIENCE


def _exporter(variable: str) -> str:
    kind = os.environ.get(variable) or "otlp"
    if kind not in ("otlp", "console", "none"):
        raise SettingsError(f"{variable}={kind!r} is not valid.", hint="Use otlp, console or none.")
    return kind


def _resource() -> Any:
    from opentelemetry.sdk.resources import Resource

    named = os.environ.get("OTEL_SERVICE_NAME")
    return Resource.create({"service.name": named or "holdfast", "service.version": __version__})
