"""The names of OpenTelemetry's SDK that are not part of its public interface, all in one place (IN-3).

A finished span is given to the processors without the steps of a running one (locks, a copy and a check of
each attribute, two calls of each processor): a tenth of the time, and most steps have such a span. Only where
nothing else could happen to it: the SDK's own processors, which do nothing at the start of a span, no limit
of lengths, and everything is sampled. Otherwise, and if a name is missing, spans are made the usual way.
"""

from __future__ import annotations

from typing import Any

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
            _samples_all(sdk.sampler)
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
        """False: nothing was done, and the span has to be made the usual way."""
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


def _samples_all(sampler: Any) -> bool:
    from opentelemetry.sdk.trace.sampling import ALWAYS_ON, DEFAULT_ON

    return sampler.get_description() in (ALWAYS_ON.get_description(), DEFAULT_ON.get_description())


def finished_spans(tracer: Tracer) -> FinishedSpans | None:
    try:
        return FinishedSpans(tracer)
    except (AttributeError, ImportError):
        return None
