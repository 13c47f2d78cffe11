"""The SDK's own metrics, added up for the page of the worker's metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from temporalio.runtime import (
    BUFFERED_METRIC_KIND_COUNTER,
    BUFFERED_METRIC_KIND_HISTOGRAM,
    BufferedMetricUpdate,
    MetricBuffer,
    MetricBufferDurationFormat,
    Runtime,
    TelemetryConfig,
)

from holdfast.runs.engine_report import EngineHistogram, EngineMetric

SIZE: Final = 100_000
"""Updates between two times that they are added up, at most."""


class SdkMetrics:
    """`runtime`: of the connections that are measured."""

    def __init__(self) -> None:
        self._buffer = MetricBuffer(SIZE, MetricBufferDurationFormat.SECONDS)
        self.runtime = Runtime(telemetry=TelemetryConfig(metrics=self._buffer))
        self._found: dict[str, EngineMetric] = {}

    def collect(self) -> list[EngineMetric]:
        """Also called when no one asks: what is not taken out of the buffer in time is lost."""
        self._add(self._buffer.retrieve_updates())
        return list(self._found.values())

    def _add(self, updates: Iterable[BufferedMetricUpdate]) -> None:
        for update in updates:
            of, labels = update.metric, {name: str(value) for name, value in update.attributes.items()}
            name = f"{of.name}_seconds" if of.unit == "s" and not of.name.endswith("_seconds") else of.name
            known = self._found.get(name)
            if known is None:
                known = self._found[name] = EngineMetric(name=name, about=of.description or name)
            series = tuple(sorted(labels.items()))
            if of.kind == BUFFERED_METRIC_KIND_HISTOGRAM:
                known.histograms.setdefault(series, EngineHistogram()).add(update.value)
            elif of.kind == BUFFERED_METRIC_KIND_COUNTER:
                known.counts[series] = known.counts.get(series, 0) + update.value
            else:
                known.gauges[series] = update.value
