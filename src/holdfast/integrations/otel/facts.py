"""From committed records to facts for telemetry: a step was completed, a hold was opened, a run has ended.

This module is independent of OpenTelemetry. A fact has no user data (no state, no prompt, no answer),
unless content was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from holdfast.checkpoint.run_history import settled_visit
from holdfast.checkpoint.visit import Visit
from holdfast.errors import HoldCancelledError, HoldExpiredError
from holdfast.integrations.otel.agent_calls import AgentCall, AgentCalls
from holdfast.integrations.otel.ids import Key
from holdfast.model.budget_ledger import usage_noted
from holdfast.model.events import derive_events, graph_at
from holdfast.model.graph import Graph
from holdfast.model.position import STEP_RETRY
from holdfast.model.record_bodies import (
    AskedBody,
    AttemptBody,
    CreatedBody,
    EndBody,
    ErrorInfo,
    IntentBody,
    StepBody,
    SubstepBody,
    Usage,
)
from holdfast.model.secrets import Paths
from holdfast.runs.record_codec import RecordCodec
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict

Moment = tuple[int, str, dict[str, str | int]]
"""(when, what, attributes): something that happened during a step."""

_ATTRIBUTES = ("attempt", "reason", "step", "ordinal", "hold_id", "checkpoint_id", "type", "wake_at")
_MAX_MOMENTS = 128


class StepEnded(msgspec.Struct, frozen=True):
    """The visit starts when its node was first started, before all attempts and waits. `usage`: what the step
    itself reported, without its sub-steps. `agent`: the name of the agent that worked in it."""

    key: Key
    visit: Visit
    moments: list[Moment]
    usage: Usage | None = None
    agent: str = ""


class StepRetried(msgspec.Struct, frozen=True):
    node: str


class HoldOpened(msgspec.Struct, frozen=True):
    node: str
    type: str


class HoldResolved(msgspec.Struct, frozen=True):
    key: Key
    hold: str
    type: str
    how: str  # answered, expired, cancelled
    asked_at: int
    ended_at: int


class TimerEnded(msgspec.Struct, frozen=True):
    """A step has waited for a time: `sleep`, or the back-off before a `retry`."""

    key: Key
    kind: str
    started_at: int
    ended_at: int


class Spent(msgspec.Struct, frozen=True):
    """What a step, one of its sub-steps or attempts, or a judge has used."""

    node: str
    usage: Usage


class RunEnded(msgspec.Struct, frozen=True):
    status: str
    at: int
    error: ErrorInfo | None = None


Fact = StepEnded | StepRetried | HoldOpened | HoldResolved | TimerEnded | AgentCall | Spent | RunEnded

_TIMERS = {"sleep": "sleep", "nap": "sleep", "retry": "retry", STEP_RETRY: "retry"}
"""Reasons of attempts that wait for a time."""


class _Hold(msgspec.Struct, frozen=True):
    key: Key
    type: str
    asked: int


class RunStory:
    """One run in this process, since its claim."""

    def __init__(self, run: Any, graph: Graph, codec: RecordCodec, *, capture: bool = False) -> None:
        self.run = run
        self._graph = graph
        self._codec = codec
        self.agents = AgentCalls(capture=capture)
        # Open visits: when each was started, and what happened since.
        self._open: dict[Key, tuple[int, list[Moment]]] = {}
        self._holds: dict[str, _Hold] = {}
        # Timers of open visits: (why, since, until).
        self._timers: dict[Key, list[tuple[str, int, int]]] = {}
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

    @property
    def secrets(self) -> Paths:
        """The paths of the flow's secret fields."""
        return self._codec.secrets

    def facts_of(self, record: Record, *, own: bool = False) -> list[Fact]:
        """`own`: committed by this process just now, not read from the store."""
        if record.kind in (Kind.chunk, Kind.snapshot):
            return []
        body = self._codec.decode(record, own=own)
        if isinstance(body, IntentBody):
            noted = usage_noted(body)
            return [] if noted is None else [Spent(record.node, noted)]
        key = (record.scope, record.node, record.visit)
        if isinstance(body, StepBody) and not self._holds and not self._timers:
            ended = self._step(record, body, key)
            self._follow(record, body, key)
            return [ended] if body.usage is None else [ended, Spent(record.node, body.usage)]
        found: list[Fact] = [*self._closed_holds(record, body, key)] if self._holds else []
        if self._timers:
            found += self._ended_timers(record, key)
        if isinstance(body, StepBody):
            found.append(self._step(record, body, key))
        elif isinstance(body, SubstepBody):
            call = self.agents.read(record, key, body)
            if call is not None:
                # Not also as a moment of its step: the name of the sub-step has the arguments of the tool.
                return [*found, call, *_spent(record, body)]
        elif isinstance(body, AttemptBody):
            found += self._attempt(record, body, key)
        elif isinstance(body, CreatedBody):
            self.source = body.lineage.get("run")
        elif isinstance(body, AskedBody):
            self._holds[body.hold] = _Hold(key, body.type, record.at)
            found.append(HoldOpened(record.node, body.type))
        found += _spent(record, body)
        self._follow(record, body, key)
        if isinstance(body, EndBody):
            found.append(RunEnded(body.status, record.at, body.error))
        return found

    def _attempt(self, record: Record, body: AttemptBody, key: Key) -> list[Fact]:
        kind = _TIMERS.get(body.reason)
        if kind is not None and body.wake_at is not None:
            self._timers.setdefault(key, []).append((kind, record.at, body.wake_at))
        return [StepRetried(record.node)] if body.reason == "retry" else []

    def _ended_timers(self, record: Record, key: Key) -> list[Fact]:
        """By the first record of the visit after the time, or by the end of the visit or the run."""
        if record.kind == Kind.end:
            over = [(each, timer) for each, timers in self._timers.items() for timer in timers]
        else:
            settled = record.kind == Kind.step
            over = [(key, timer) for timer in self._timers.get(key, ()) if settled or timer[2] <= record.at]
        for each, timer in over:
            self._timers[each].remove(timer)
            if not self._timers[each]:
                del self._timers[each]
        return [TimerEnded(each, kind, since, record.at) for each, (kind, since, _) in over]

    def _follow(self, record: Record, body: Any, key: Key) -> None:
        """Which steps start, and what happens during open ones."""
        if isinstance(body, StepBody) and len(body.moves) == 1 and body.moves[0][0] == "G":
            # The common step, without its events: its visit is over, and the next one starts.
            _, scope, edge, visit = body.moves[0]
            inner = graph_at(self._graph, scope) if scope else self._graph
            self._open[(scope, inner.nodes[inner.target[edge]].id, visit)] = (record.at, [])
            return
        for kind, node, scope, data in derive_events(self._graph, self.run, record, body, checkpoints=False):
            if kind == "node.started":
                self._open[(scope, node, data["visit"])] = (record.at, [])
            elif kind == "node.abandoned":
                for gone in [k for k in self._open if k[:2] == (scope, node)]:
                    del self._open[gone]
            elif kind in ("edge.taken", "loop.turned"):
                continue
            # The answer of a hold is reported when the hold is closed; the end of a visit is its span.
            elif kind != "hold.answered" and key in self._open:
                self._moment(key, record.at, kind, _attributes(data, body))

    def _moment(self, key: Key, at: int, what: str, attributes: dict[str, str | int]) -> None:
        _, moments = self._open.get(key, (0, None))
        if moments is not None and len(moments) < _MAX_MOMENTS:
            moments.append((at, what, attributes))

    def _step(self, record: Record, body: StepBody, key: Key) -> StepEnded:
        visit = settled_visit(record, body)
        visit.started_at, moments = self._open.pop(key, (visit.started_at, []))
        agent = ""
        if self.agents.any_agent():
            agent = self.agents.agent_of(key)
            self.agents.end(key)
        return StepEnded(key, visit, moments, body.usage, agent)

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
                yield HoldResolved(asked.key, hold, asked.type, how, asked.asked, record.at)


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


def _spent(record: Record, body: Any) -> list[Fact]:
    usage: Usage | None = getattr(body, "usage", None)
    return [] if usage is None else [Spent(record.node, usage)]


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
