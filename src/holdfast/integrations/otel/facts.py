"""From committed records to facts for telemetry: a step was completed, a hold was opened, a run has ended.

This module is independent of OpenTelemetry. A fact has no user data: no state, no prompt, no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.checkpoint.fold import settled_visit
from holdfast.checkpoint.visit import Visit
from holdfast.errors import HoldCancelledError, HoldExpiredError
from holdfast.integrations.otel.ids import Key
from holdfast.model.events import derive_events
from holdfast.model.graph import Graph
from holdfast.model.record_bodies import (
    AskedBody,
    AttemptBody,
    CreatedBody,
    EndBody,
    ErrorInfo,
    StepBody,
    SubstepBody,
    Usage,
)
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict

Moment = tuple[int, str, dict[str, str | int]]
"""(when, what, attributes): something that happened during a step."""

_ATTRIBUTES = ("attempt", "reason", "step", "ordinal", "hold_id", "checkpoint_id", "type", "wake_at")
_MAX_MOMENTS = 128


class StepEnded(msgspec.Struct, frozen=True):
    """The visit starts when its node was first started, before all attempts and waits. `usage`: what the step
    itself reported, without its sub-steps."""

    key: Key
    visit: Visit
    moments: list[Moment]
    usage: Usage | None = None


class StepRetried(msgspec.Struct, frozen=True):
    node: str


class HoldOpened(msgspec.Struct, frozen=True):
    node: str
    type: str


class HoldResolved(msgspec.Struct, frozen=True):
    node: str
    type: str
    how: str  # answered, expired, cancelled
    waited: int


class RunEnded(msgspec.Struct, frozen=True):
    status: str
    at: int
    error: ErrorInfo | None = None


Fact = StepEnded | StepRetried | HoldOpened | HoldResolved | RunEnded


class _Hold(msgspec.Struct, frozen=True):
    key: Key
    type: str
    asked: int


class RunStory:
    """One run in this process, since its claim."""

    def __init__(self, run: Any, graph: Graph, codec: RecordCodec) -> None:
        self.run = run
        self._graph = graph
        self._codec = codec
        # Open visits: when each was started, and what happened since.
        self._open: dict[Key, tuple[int, list[Moment]]] = {}
        self._holds: dict[str, _Hold] = {}
        # What earlier workers did: the last term that wrote something, and the last step.
        self.earlier_term = 0
        self.earlier_step: Key | None = None
        self.source: str | None = None  # of a fork: the run that it was forked from

    def recall(self, records: list[Record]) -> None:
        """Read records that earlier workers have already exported."""
        for record in records:
            for fact in self.facts_of(record):
                if isinstance(fact, StepEnded):
                    self.earlier_step = fact.key
            self.earlier_term = max(self.earlier_term, record.term)

    def facts_of(self, record: Record) -> Iterator[Fact]:
        if record.kind in (Kind.chunk, Kind.snapshot, Kind.intent):
            return
        body = self._codec.decode(record)
        key = (record.scope, record.node, record.visit)
        yield from self._closed_holds(record, body, key)
        if isinstance(body, StepBody):
            yield self._step(record, body, key)
        elif isinstance(body, AttemptBody) and body.reason == "retry":
            yield StepRetried(record.node)
        elif isinstance(body, CreatedBody):
            self.source = body.lineage.get("run")
        elif isinstance(body, AskedBody):
            self._holds[body.hold] = _Hold(key, body.type, record.at)
            yield HoldOpened(record.node, body.type)
        self._follow(record, body, key)
        if isinstance(body, EndBody):
            yield RunEnded(body.status, record.at, body.error)

    def _follow(self, record: Record, body: Any, key: Key) -> None:
        """Which steps start, and what happens during open ones."""
        for kind, node, scope, data in derive_events(self._graph, self.run, record, body):
            if kind == "node.started":
                self._open[(scope, node, data["visit"])] = (record.at, [])
            elif kind == "node.abandoned":
                for gone in [k for k in self._open if k[:2] == (scope, node)]:
                    del self._open[gone]
            elif kind in ("edge.taken", "checkpoint.created", "loop.turned"):
                continue
            elif kind != "hold.answered":  # reported when its hold is closed
                self._moment(key, record.at, kind, _attributes(data, body))

    def _moment(self, key: Key, at: int, what: str, attributes: dict[str, str | int]) -> None:
        _, moments = self._open.get(key, (0, None))
        if moments is not None and len(moments) < _MAX_MOMENTS:
            moments.append((at, what, attributes))

    def _step(self, record: Record, body: StepBody, key: Key) -> StepEnded:
        visit = settled_visit(record, body)
        visit.started_at, moments = self._open.pop(key, (visit.started_at, []))
        return StepEnded(key, visit, moments, body.usage)

    def _closed_holds(self, record: Record, body: Any, key: Key) -> Iterator[HoldResolved]:
        """A hold is over when its answer is consumed, or when the record closes it."""
        side = record.side
        shown = {closed.id: closed for closed in side.close_holds} if side is not None else {}
        for hold, asked in list(self._holds.items()):
            closed = shown.get(hold)  # type: ignore[call-overload]
            over = side is not None and side.close_all_holds is not None
            how = ""
            if asked.key == key and _takes_answer(record, body, hold):
                how = _ended(body)
            elif closed is not None or over:
                how = "cancelled"
            if how:
                del self._holds[hold]
                self._moment(asked.key, record.at, f"hold.{how}", {"hold": hold, "type": asked.type})
                yield HoldResolved(asked.key[1], asked.type, how, record.at - asked.asked)


_LAPSED = {HoldExpiredError.code: "expired", HoldCancelledError.code: "cancelled"}
"""By the error that a node gets if its hold was not decided."""


def _ended(body: Any) -> str:
    """Not answered if the node got an error, or if the bound result says so."""
    error = getattr(body, "error", None)
    if error is not None and error.code in _LAPSED:
        return _LAPSED[error.code]
    bound: list[Any] = [operand for _, key, _, operand in getattr(body, "ops", ()) if key.endswith("_result")]
    lines = [each for each in (*bound, getattr(body, "value", None)) if isinstance(each, FrozenDict)]
    return "expired" if any(each.get("expired") or each.get("auto_expired") for each in lines) else "answered"


def _takes_answer(record: Record, body: Any, hold: str) -> bool:
    if isinstance(body, SubstepBody):
        return body.hold == hold
    if isinstance(body, AttemptBody):
        return body.reason in ("in_doubt", "not_happened", "continued")
    return record.kind == Kind.step


def _attributes(data: dict[str, Any], body: Any) -> dict[str, str | int]:
    found = {name: data[name] for name in _ATTRIBUTES if isinstance(data.get(name), (str, int))}
    for name in ("checkpoint_id", "hold_id"):
        if name in found:
            found["hold"] = found.pop(name)
    error = getattr(body, "error", None)
    if isinstance(error, ErrorInfo):
        found["exception.type"] = error.type
    return found
