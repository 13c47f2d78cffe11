"""An instance whose runs are exported to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from holdfast import Holdfast
from holdfast.integrations.otel import instrument


class Exported:
    """What was exported."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider(sampler, shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def watch(self, hf: Holdfast, **options: Any) -> Holdfast:
        instrument(hf, tracer_provider=self.tracers, meter_provider=self.meters, **options)
        return hf

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def metric(self, name: str) -> dict[tuple[Any, ...], Any]:
        """Values (of histograms: how often) by attribute values, in the order of attribute names."""
        data = self._reader.get_metrics_data()
        points = [
            point
            for resource in (data.resource_metrics if data else [])
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
        return {
            tuple(value for _, value in sorted(point.attributes.items())): getattr(point, "value", None)
            if hasattr(point, "value")
            else point.count
            for point in points
        }


@pytest.fixture
def exported() -> Iterator[Exported]:
    exported = Exported()
    yield exported
    exported.tracers.shutdown()
    exported.meters.shutdown()
