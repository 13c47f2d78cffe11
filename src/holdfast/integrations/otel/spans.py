"""Spans of completed work: each is started and ended at once, with the times of the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from holdfast.checkpoint.fold import error_of
from holdfast.checkpoint.visit import error_text
from holdfast.integrations.otel.facts import Moment, RunEnded, RunStory, StepEnded
from holdfast.integrations.otel.ids import DerivedIds, Key, root_of, segment_of, step_of, trace_id_of, wanted
from holdfast.model.secrets import outgoing
from holdfast.store.rows import RunRow
from holdfast.types.redaction import tenant_scope

_FAILED = frozenset({"fail", "failed", "unknown", "cancelled"})
Attributes = dict[str, str | int | float]


class Spans:
    """`messages`: also export the texts of errors, which may contain user data."""

    def __init__(self, tracer: Tracer, *, messages: bool) -> None:
        # A tracer without an id generator (the no-op tracer of a program without a set-up) is left alone.
        if hasattr(tracer, "id_generator"):
            tracer.id_generator = DerivedIds()  # type: ignore[attr-defined]
        self._tracer = tracer
        self._messages = messages

    # ------------------------------------------------------------------ places
    def around(self, run: str, key: Key) -> Context:
        """The context of a step: spans of its handler become its children."""
        return set_span_in_context(NonRecordingSpan(self._place(run, step_of(run, key))))

    def _place(self, run: str, span: int) -> SpanContext:
        trace = trace_id_of(run)
        return SpanContext(trace, span, is_remote=True, trace_flags=self._flags(trace))

    def _flags(self, trace: int) -> TraceFlags:
        """Whether the run's root will be sampled: all processes get the same result."""
        sampler: Any = getattr(self._tracer, "sampler", None)
        if sampler is None:
            return TraceFlags(TraceFlags.SAMPLED)
        sampled = sampler.should_sample(None, trace, "run").decision.is_sampled()
        return TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)

    # ------------------------------------------------------------------ spans
    def step(self, row: RunRow, step: StepEnded) -> None:
        visit = step.visit
        attributes: Attributes = {
            **_of_run(row),
            "holdfast.node": visit.node,
            "holdfast.visit": visit.visit,
            "holdfast.attempt": visit.attempts,
            "holdfast.effect": visit.effect,
            "holdfast.outcome": visit.outcome,
            "holdfast.seq": visit.seq,
            "holdfast.duration_us": visit.duration,
        }
        if visit.scope:
            attributes["holdfast.scope"] = visit.scope
        if step.usage is not None:
            attributes |= {"holdfast.tokens": step.usage.tokens, "holdfast.cost": step.usage.cost}
        self._export_span(
            row.id,
            visit.node,
            step_of(row.id, step.key),
            (visit.started_at, visit.ended_at or visit.started_at),
            attributes,
            moments=step.moments,
            failed=visit.outcome in _FAILED,
            error=visit.error,
        )

    def segment(self, row: RunRow, story: RunStory, when: tuple[int, int], ended: str, term: int) -> None:
        """The time in which this process had the run. It links to the previous segment and its last step."""
        earlier = [segment_of(row.id, story.earlier_term)] if story.earlier_term else []
        if story.earlier_step is not None:
            earlier.append(step_of(row.id, story.earlier_step))
        self._export_span(
            row.id,
            f"advance {row.flow}",
            segment_of(row.id, term),
            when,
            {**_of_run(row), "holdfast.term": term, "holdfast.ended": ended},
            links=[Link(self._place(row.id, span)) for span in earlier],
            failed=ended == "lost",
        )

    def root(self, row: RunRow, story: RunStory, end: RunEnded) -> None:
        links: list[Link] = []
        if story.source:
            links = [Link(self._place(story.source, root_of(story.source)), {"holdfast.link": "forked_from"})]
        self._export_span(
            row.id,
            f"run {row.flow}",
            root_of(row.id),
            (row.created_at, end.at),
            {**_of_run(row), "holdfast.status": end.status},
            links=links,
            is_root=True,
            failed=end.status in _FAILED,
            error=error_of(end.error),
        )

    def _export_span(
        self,
        run: str,
        name: str,
        span_id: int,
        when: tuple[int, int],
        attributes: Attributes,
        *,
        links: Sequence[Link] = (),
        moments: Sequence[Moment] = (),
        is_root: bool = False,
        failed: bool = False,
        error: dict[str, str] | None = None,
    ) -> None:
        # Names of steps have the arguments of an agent's tools, and messages what a handler wrote.
        # Spans are the operator's: secrets of all tenants are masked.
        with tenant_scope(None):
            name, attributes, error = outgoing(name), outgoing(attributes), outgoing(error)
            moments = [(at, what, outgoing(_attributes(entry))) for at, what, entry in moments]
        wanted.set((trace_id_of(run), span_id))
        parent = (
            Context() if is_root else set_span_in_context(NonRecordingSpan(self._place(run, root_of(run))))
        )
        span = self._tracer.start_span(
            name, parent, SpanKind.INTERNAL, attributes, links, start_time=_nanos(when[0])
        )
        for at, what, entry in moments:
            span.add_event(what, entry, _nanos(at))
        if error is not None:
            span.add_event("exception", self._error(error), _nanos(when[1]))
        if failed:
            span.set_status(Status(StatusCode.ERROR, self._reason(error)))
        span.end(_nanos(max(when)))

    def _reason(self, error: dict[str, str] | None) -> str | None:
        if error is None:
            return None
        return error_text(error) if self._messages else error["type"]

    def _error(self, error: dict[str, str]) -> Attributes:
        shown: Attributes = {"exception.type": error["type"], "holdfast.code": error["code"]}
        return {**shown, "exception.message": error["message"]} if self._messages else shown


def _of_run(row: RunRow) -> Attributes:
    return {
        "holdfast.run_id": row.id,
        "holdfast.flow": row.flow,
        "holdfast.version": row.version,
        "holdfast.tenant": row.tenant,
    }


def _attributes(shown: Mapping[str, str | int]) -> Attributes:
    return {name if "." in name else f"holdfast.{name}": value for name, value in shown.items()}


def _nanos(micros: int) -> int:
    return micros * 1000
