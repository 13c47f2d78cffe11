"""Spans of completed work: each is started and ended at once, with the times of the records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
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

from holdfast.checkpoint.run_history import error_of
from holdfast.checkpoint.visit import error_text
from holdfast.integrations.otel import conventions as names
from holdfast.integrations.otel.agent_calls import AgentCall
from holdfast.integrations.otel.facts import HoldResolved, Moment, RunEnded, RunStory, StepEnded, TimerEnded
from holdfast.integrations.otel.ids import (
    DerivedIds,
    Key,
    part_of,
    root_of,
    segment_of,
    step_of,
    trace_id_of,
    wanted,
)
from holdfast.integrations.otel.private_names import finished_spans, samples_traces
from holdfast.model.secrets import outgoing
from holdfast.store.rows import RunRow
from holdfast.types.redaction import redactor, tenant_scope

_FAILED = frozenset({"fail", "failed", "unknown", "cancelled"})
_MAX_TRACES = 1000
Attributes = dict[str, Any]


class _Trace(msgspec.Struct, frozen=True):
    """What all spans of a run share. `root`: the context in which its children are started, `place` the span
    in it. `left_out`: the sampler takes none of its spans, so that none is described."""

    id: int
    flags: TraceFlags
    root: Context
    place: SpanContext
    left_out: bool


class _StepPlace(NonRecordingSpan):
    """The current span while a handler runs. Most handlers start no span of their own: its ids are computed
    when one asks for them."""

    def __init__(self, spans: Spans, run: str, key: Key) -> None:
        self._of = (spans, run, key)

    def get_span_context(self) -> SpanContext:
        spans, run, key = self._of
        return spans.place(run, step_of(run, key))


class Spans:
    """`messages`: also export the texts of errors, which may contain user data. `capture`: also what is said
    to models and tools, and what they answer."""

    def __init__(self, tracer: Tracer, *, messages: bool, capture: bool = False) -> None:
        # A tracer without an id generator (the no-op tracer of a program without a set-up) is left alone.
        if hasattr(tracer, "id_generator"):
            tracer.id_generator = DerivedIds()  # type: ignore[attr-defined]
        self._tracer = tracer
        self._messages = messages
        self.capture = capture
        self._traces: dict[str, _Trace] = {}
        self._finished = finished_spans(tracer)
        self._whole_traces = samples_traces(getattr(tracer, "sampler", None))

    # ------------------------------------------------------------------ places
    def around(self, run: str, key: Key) -> Context:
        """The context of a step: spans of its handler become its children."""
        return set_span_in_context(_StepPlace(self, run, key))

    def place(self, run: str, span: int) -> SpanContext:
        trace = self._trace(run)
        return SpanContext(trace.id, span, is_remote=True, trace_flags=trace.flags)

    def _trace(self, run: str) -> _Trace:
        found = self._traces.get(run)
        if found is None:
            if len(self._traces) >= _MAX_TRACES:
                self._traces.clear()
            trace = trace_id_of(run)
            flags = self._flags(trace)
            root = SpanContext(trace, root_of(run), is_remote=True, trace_flags=flags)
            inside = set_span_in_context(NonRecordingSpan(root))
            left_out = self._whole_traces and not flags & TraceFlags.SAMPLED
            found = self._traces[run] = _Trace(trace, flags, inside, root, left_out)
        return found

    def _flags(self, trace: int) -> TraceFlags:
        """Whether the run's root will be sampled: all processes get the same result."""
        sampler: Any = getattr(self._tracer, "sampler", None)
        if sampler is None:
            return TraceFlags(TraceFlags.SAMPLED)
        sampled = sampler.should_sample(Context(), trace, "run").decision.is_sampled()
        return TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)

    def _under(self, run: str, key: Key) -> Context:
        return set_span_in_context(NonRecordingSpan(self.place(run, step_of(run, key))))

    # ------------------------------------------------------------------ spans
    def step(self, row: RunRow, step: StepEnded) -> None:
        if self._trace(row.id).left_out:
            return
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
        if step.agent:
            attributes |= {names.OPERATION: names.INVOKE_AGENT, names.AGENT: step.agent, **_conversation(row)}
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

    def call(self, row: RunRow, call: AgentCall, story: RunStory) -> None:
        """One call of a model or a tool, below its step."""
        if self._trace(row.id).left_out:
            return
        attributes = {**_of_step(row, call.key), **_conversation(row), **call.attributes}
        with tenant_scope(None):
            for name, value in call.content.items():
                shown = outgoing(value, story.secrets)
                attributes[name] = shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)
        if call.error is not None:
            attributes["error.type"] = call.error.type
        self._export_span(
            row.id,
            f"{call.operation} {call.subject}".strip(),
            part_of(row.id, call.key, call.ordinal),
            (call.started_at, call.ended_at),
            attributes,
            parent=self._under(row.id, call.key),
            kind=SpanKind.CLIENT if call.operation == names.CHAT else SpanKind.INTERNAL,
            failed=call.error is not None,
            error=error_of(call.error),
        )

    def wait(self, row: RunRow, wait: HoldResolved | TimerEnded) -> None:
        """The time in which a step waited for a person, an event, another run or a timer."""
        attributes = _of_step(row, wait.key)
        if isinstance(wait, HoldResolved):
            kind, started = wait.type, wait.asked_at
            attributes |= {"holdfast.hold": wait.hold, "holdfast.how": wait.how}
            part = wait.hold
        else:
            kind, started = wait.kind, wait.started_at
            part = f"{kind}@{started}"
        self._export_span(
            row.id,
            f"wait {kind}",
            part_of(row.id, wait.key, f"wait {part}"),
            (started, wait.ended_at),
            {**attributes, "holdfast.wait": kind},
            parent=self._under(row.id, wait.key),
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
            links=[Link(self.place(row.id, span)) for span in earlier],
            failed=ended == "lost",
        )

    def root(self, row: RunRow, story: RunStory, end: RunEnded) -> None:
        links: list[Link] = []
        if story.source:
            links = [Link(self.place(story.source, root_of(story.source)), {"holdfast.link": "forked_from"})]
        attributes = {**_of_run(row), "holdfast.status": end.status}
        if story.agents.any_agent():
            attributes |= {
                names.OPERATION: names.INVOKE_WORKFLOW,
                names.WORKFLOW: row.flow,
                **_conversation(row),
            }
        self._export_span(
            row.id,
            f"run {row.flow}",
            root_of(row.id),
            (row.created_at, end.at),
            attributes,
            links=links,
            parent=Context(),
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
        parent: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: bool = False,
        error: dict[str, str] | None = None,
    ) -> None:
        """`parent`: default is the root of the run."""
        trace = self._trace(run)
        if trace.left_out:
            return
        if moments:
            moments = [(at, what, _attributes(entry)) for at, what, entry in moments]
        if not redactor.is_empty:
            # Names of steps have the arguments of an agent's tools, and messages what a handler wrote.
            # Spans are the operator's: secrets of all tenants are masked.
            with tenant_scope(None):
                name, attributes, error = outgoing(name), outgoing(attributes), outgoing(error)
                moments = [(at, what, outgoing(entry)) for at, what, entry in moments]
        times = (_nanos(when[0]), _nanos(max(when)))
        # Most steps: nothing happened in them but their end.
        plain = parent is None and not (links or moments or failed or error)
        if plain and self._finished is not None:
            done = self._finished.export(name, span_id, trace.place, times, attributes)
            if done:
                return
        wanted.set((trace.id, span_id))
        span = self._tracer.start_span(
            name,
            trace.root if parent is None else parent,
            kind,
            attributes,
            links,
            start_time=times[0],
        )
        for at, what, entry in moments:
            span.add_event(what, entry, _nanos(at))
        if error is not None:
            span.add_event("exception", self._error(error), _nanos(when[1]))
        if failed:
            span.set_status(Status(StatusCode.ERROR, self._reason(error)))
        span.end(times[1])

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


def _of_step(row: RunRow, key: Key) -> Attributes:
    scope, node, visit = key
    where: Attributes = {"holdfast.scope": scope} if scope else {}
    return {**_of_run(row), **where, "holdfast.node": node, "holdfast.visit": visit}


def _conversation(row: RunRow) -> Attributes:
    return {names.CONVERSATION: row.thread} if row.thread else {}


def _attributes(shown: Mapping[str, str | int]) -> dict[str, str | int]:
    return {name if "." in name else f"holdfast.{name}": value for name, value in shown.items()}


def _nanos(micros: int) -> int:
    return micros * 1000
