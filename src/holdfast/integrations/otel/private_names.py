"""The names of OpenTelemetry's SDK that are not part of its public interface, all in one place (IN-3).

A finished span is given to the processors without the steps of a running one (locks, a copy and a check of
each attribute, two calls of each processor): a tenth of the time, and most steps have such a span. Only where
nothing else could happen to it: the SDK's own processors, which do nothing at the start of a span, no limit
of lengths, and a sampler that takes or leaves whole traces. Otherwise, and if a name is missing, spans are
made the usual way.

Likewise many values of one series of a histogram: the series is found once, and not for each value by a copy,
a check and a hash of its attributes. Not where a view leaves attributes out, or each value is an exemplar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from opentelemetry.metrics import Histogram
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags, Tracer

_PROCESSORS = frozenset({"BatchSpanProcessor", "SimpleSpanProcessor"})
MAX_ATTRIBUTES = 32
"""A span with more is made the usual way, which cuts them where that is configured."""


class FinishedSpans:
    """The short way for one tracer. Raises AttributeError if a name of the SDK is missing."""

    def __init__(self, tracer: Tracer) -> None:
        from opentelemetry.sdk.trace import ReadableSpan

        sdk: Any = tracer
        self._span: Any = ReadableSpan
        self._processor: Any = sdk.span_processor
        self._resource: Any = sdk.resource
        self._scope: Any = sdk._instrumentation_scope
        self._enabled: Any = sdk._is_enabled
        self._processors: Any = self._processor._span_processors
        self._plain = _are_plain(self._processors)
        self._flags = TraceFlags(TraceFlags.SAMPLED | TraceFlags.RANDOM_TRACE_ID)
        limits: Any = sdk._span_limits
        self._possible = (
            samples_traces(sdk.sampler)
            and limits.max_span_attribute_length is None
            and limits.max_span_attributes >= MAX_ATTRIBUTES
        )

    def export(
        self,
        name: str,
        span_id: int,
        parent: SpanContext,
        when: tuple[int, int],
        attributes: dict[str, Any],
    ) -> bool:
        """Of a trace that is sampled. False: nothing was done, and the span has to be made the usual way."""
        processors = self._processor._span_processors
        if processors is not self._processors:
            self._processors, self._plain = processors, _are_plain(processors)
        if not (self._possible and self._plain and self._enabled()) or len(attributes) > MAX_ATTRIBUTES:
            return False
        self._processor.on_end(
            self._span(
                name,
                SpanContext(parent.trace_id, span_id, is_remote=False, trace_flags=self._flags),
                parent,
                self._resource,
                attributes,
                kind=SpanKind.INTERNAL,
                start_time=when[0],
                end_time=when[1],
                instrumentation_scope=self._scope,
            )
        )
        return True


def _are_plain(processors: Any) -> bool:
    return all(
        type(each).__name__ in _PROCESSORS and type(each).__module__.startswith("opentelemetry.sdk.")
        for each in processors
    )


_SAMPLERS = "opentelemetry.sdk.trace.sampling"
_OF_TRACES = r"AlwaysOnSampler|AlwaysOffSampler|TraceIdRatioBased\{[^{}]*\}"
_BY_TRACE = re.compile(
    rf"({_OF_TRACES})|ParentBased\{{root:({_OF_TRACES}),"
    r"remoteParentSampled:AlwaysOnSampler,remoteParentNotSampled:AlwaysOffSampler,"
    r"localParentSampled:AlwaysOnSampler,localParentNotSampled:AlwaysOffSampler\}"
)


def samples_traces(sampler: Any) -> bool:
    """Whether it takes all spans of a trace or none: the SDK's own samplers do. Another one may look at the
    name or the attributes of each span."""
    try:
        held = cast("dict[str, Any]", vars(sampler))
        described = sampler.get_description()
    except (AttributeError, TypeError):
        return False
    # One that is derived from them has their description.
    parts: list[Any] = [sampler, *held.values()]
    own = all(type(each).__module__ == _SAMPLERS for each in parts if hasattr(each, "should_sample"))
    return own and _BY_TRACE.fullmatch(described) is not None


def finished_spans(tracer: Tracer) -> FinishedSpans | None:
    try:
        return FinishedSpans(tracer)
    except (AttributeError, ImportError):
        return None


_EXEMPLAR_FILTERS = frozenset({"TraceBasedExemplarFilter", "AlwaysOffExemplarFilter"})


class _Measured(msgspec.Struct):
    """As much of a measurement as an aggregation reads of one that is no exemplar."""

    value: float


def record_all(histogram: Histogram, values: Sequence[float], attributes: Mapping[str, str]) -> None:
    """These values of one series, measured outside all spans."""
    try:
        places, key = _series(histogram, attributes)
    except (AttributeError, ImportError, LookupError):
        for value in values:
            histogram.record(value, attributes)
        return
    measured = _Measured(0.0)
    for lock, series in places:
        # As the SDK does it where a collection starts new series: none is taken away meanwhile.
        with lock:
            aggregation = series(key, dict(attributes))
            for measured.value in values:
                aggregation.aggregate(measured, False)


def _series(histogram: Any, attributes: Mapping[str, str]) -> tuple[list[tuple[Any, Any]], Any]:
    """The lock and the series of each reader and view, and their key; none if its meter is disabled. Raises
    AttributeError or ImportError for a missing name of the SDK, LookupError where the short way is not
    possible."""
    from opentelemetry.sdk.metrics._internal import _view_instrument_match

    sdk: Any = _view_instrument_match
    consumer = histogram._measurement_consumer
    if type(consumer._sdk_config.exemplar_filter).__name__ not in _EXEMPLAR_FILTERS:
        raise LookupError
    matches = [
        match
        for storage in (consumer._reader_storages.values() if histogram._is_enabled() else ())
        for match in storage._get_or_init_view_instrument_match(histogram)
    ]
    if any(match._view._attribute_keys is not None for match in matches):
        raise LookupError
    places = [(match._lock, match._get_or_create_aggregation) for match in matches]
    return places, sdk._hash_attributes(attributes)
