"""What led to a record: the message that the engine got, derived from the journal.

A worker receives messages (a handler ended, an answer arrived, a timer fired) and records their results. The
journal has enough of each to give the engine the same message again, without user code (D-26).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from holdfast.engine.messages import (
    BreakpointsSet,
    CancelRequested,
    CodeChanged,
    EvidenceArrived,
    HandlerFinished,
    HandlerLost,
    HandlersStopped,
    HoldAnswered,
    HoldUnanswered,
    Message,
    ResumeRequested,
    SubstepDoubted,
    SubstepEvidence,
    TimerFired,
)
from holdfast.engine.walk_state import SKIPS_BY
from holdfast.errors import HeartbeatMissedError, HoldCancelledError, StateError
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import Graph, InDoubt, Node, NodeKind
from holdfast.model.position import SETTLED, STEP_RETRY, STEP_WOKE, Exec, Position, find_exec
from holdfast.model.record_bodies import AskedBody, AttemptBody, EndBody, ErrorInfo, StepBody, SubstepBody
from holdfast.types.hold import NO_HEARTBEAT
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict

NO_ERROR: Final = ErrorInfo("", "", "")


class ReplayStep(msgspec.Struct, frozen=True):
    """A record at which something was decided, and the position of the run. `graph`: the one that decides
    now; `journal_graph`: the one that the numbers in the journal refer to."""

    graph: Graph
    journal_graph: Graph
    pos: Position
    record: Record
    body: Any
    reason: str = ""  # why the run was cancelled, if it was

    @property
    def execution(self) -> Exec:
        return find_exec(self.graph, self.pos, self.record)

    def node(self, execution: Exec) -> Node:
        return self.pos.scope_graph(self.graph, self.pos.scopes[execution.scope]).nodes[execution.node]

    def hold(self, why: str, key: str = "") -> str:
        """The open question of the record's node; empty if there is none."""
        at = self.execution
        for hold, wait in self.pos.holds.items():
            if (wait.scope, wait.node, wait.why) == (at.scope, at.node, why) and key in ("", wait.key):
                return hold
        return ""

    def policy(self, node: Node) -> InDoubt:
        return node.in_doubt or self.graph.spec.in_doubt


Cause = Sequence[Message] | None
"""The messages to the engine; empty: the record was written by a worker without a decision; None: it only
follows from another."""


def answered_message(hold: str, resolution: Any) -> HoldAnswered:
    resolution = resolution if isinstance(resolution, FrozenDict) else FrozenDict(resolution)
    return HoldAnswered(hold=hold, resolution=resolution, by=resolution.get("resolved_by") or "", at=0)


def undecided_message(hold: str, error: ErrorInfo | None) -> HoldUnanswered:
    """A hold that was not decided, as its error says."""
    if error is not None and error.code == HeartbeatMissedError.code:
        return HoldUnanswered(hold=hold, reason=NO_HEARTBEAT)
    if error is None or error.code != HoldCancelledError.code:
        return HoldUnanswered(hold=hold)
    return HoldUnanswered(
        hold=hold, withdrawn=True, raises=True, reason=error.message.partition(" was withdrawn: ")[2]
    )


def failed_message(execution: Exec, error: ErrorInfo | None, **more: Any) -> HandlerFinished:
    return HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        outcome="fail",
        error=error or NO_ERROR,
        **more,
    )


def doubt_message(execution: Exec, substep: str, error: ErrorInfo | None) -> Message:
    if not substep:
        return failed_message(execution, error, unknown=True)
    return SubstepDoubted(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        substep=substep,
        error=error or NO_ERROR,
    )


FACTS: Final = frozenset(
    {"withdrawn", "loaded", "uncheckpointed", "damaged", "ignored", "fell_back", "nap", STEP_RETRY}
)
"""Attempt records that a worker writes by itself: nothing is decided by them."""


def attempt_cause(scene: ReplayStep) -> Cause:
    body: AttemptBody = scene.body
    if body.reason in FACTS:
        return ()
    cause = _REASONS.get(body.reason)
    return None if cause is None else cause(scene, body)


def _retry(scene: ReplayStep, body: AttemptBody) -> Cause:
    execution = scene.execution
    if scene.node(execution).kind in PARENTS:
        return None
    return [failed_message(execution, body.error, retryable=True)]


def _in_doubt(scene: ReplayStep, _body: AttemptBody) -> Cause:
    execution = scene.execution
    policy = scene.policy(scene.node(execution))
    if execution.phase == "doubt":
        return [answered_message(scene.hold("doubt"), {"decision": "not_happened"})]
    if policy is InDoubt.probe and not execution.step_intents:
        return [failed_message(execution, None, probe="not_happened")]
    return [doubt_message(execution, next(iter(execution.step_intents), ""), None)]


def _not_happened(scene: ReplayStep, body: AttemptBody) -> Cause:
    return [answered_message(scene.hold("doubt_step", body.token), {"decision": "not_happened"})]


def _woke(scene: ReplayStep, _body: AttemptBody) -> Cause:
    return [TimerFired(token=scene.execution.token)]


def _step_woke(scene: ReplayStep, body: AttemptBody) -> Cause:
    waiting = scene.execution.subs.get(body.nodes[0])
    return None if waiting is None else [TimerFired(token=waiting.hold)]


def _resumed(_scene: ReplayStep, _body: AttemptBody) -> Cause:
    return [ResumeRequested()]


def _join_timeout(scene: ReplayStep, _body: AttemptBody) -> Cause:
    pos, record = scene.pos, scene.record
    inner = pos.scope_graph(scene.graph, pos.scopes[record.scope])
    here = (record.scope, inner.index.get(record.node, -1))
    token = next((t for t, key in pos.timers.items() if key == here and t in pos.join_wakes), "")
    return [TimerFired(token=token)] if token else None


def _code_hold(pos: Position) -> str:
    return next((hold for hold, wait in pos.holds.items() if wait.why == "code"), "")


def _code_changed(scene: ReplayStep, body: AttemptBody) -> Cause:
    hold = _code_hold(scene.pos)
    if hold:
        return [answered_message(hold, {"decision": "accept"})]
    return [CodeChanged(old=scene.pos.code, new=body.token, nodes=list(body.nodes))]


def _breaks(_scene: ReplayStep, body: AttemptBody) -> Cause:
    kept: dict[str, Any] = msgspec.json.decode(body.token)
    return [BreakpointsSet(breaks=list(kept["breaks"]), off=kept["off"])]


def _continued(scene: ReplayStep, body: AttemptBody) -> Cause:
    return [answered_message(body.token, {"decision": "continue"})]


def _failing(scene: ReplayStep, _body: AttemptBody) -> Cause:
    hold = _code_hold(scene.pos)
    if hold:
        return [answered_message(hold, {"decision": "refuse"})]
    return [ResumeRequested()] if scene.pos.failing is not None else None


def _lost(scene: ReplayStep, _body: Any) -> Cause:
    """Outside of a recovery of the whole run: on an engine that gives each execution a worker of its own."""
    execution = scene.execution
    return [HandlerLost(scope=execution.scope, node=execution.node, visit=execution.visit)]


_REASONS: dict[str, Callable[[ReplayStep, AttemptBody], Cause]] = {
    "retry": _retry,
    "restarted": _lost,
    "in_doubt": _in_doubt,
    "not_happened": _not_happened,
    "woke": _woke,
    STEP_WOKE: _step_woke,
    "resumed": _resumed,
    "join_timeout": _join_timeout,
    "timed_out": _woke,
    "code_changed": _code_changed,
    "failing": _failing,
    "breaks": _breaks,
    "continued": _continued,
}


def cause_of(scene: ReplayStep) -> Cause:
    """Raises CheckpointCorruptError if the record is about a node that is not running."""
    return _CAUSES.get(Kind(scene.record.kind), _fact)(scene)


def _fact(_scene: ReplayStep) -> Cause:
    return ()


# ---------------------------------------------------------------------- steps


def _step(scene: ReplayStep) -> Cause:
    body: StepBody = scene.body
    if scene.record.outcome == "unknown" and scene.reason:
        return [CancelRequested(reason=scene.reason), HandlersStopped()]
    cause = _settling(scene, body)
    if cause and scene.reason and ("C", "", 0, 0) in map(tuple, body.moves):
        # Everything was done, and still the run ended as cancelled: the cancel request came before.
        return [CancelRequested(reason=scene.reason), *cause]
    return cause


def _settling(scene: ReplayStep, body: StepBody) -> Cause:
    execution = scene.execution
    node = scene.node(execution)
    if node.kind in PARENTS and SETTLED not in execution.subs:
        return None
    if execution.phase == "asked":
        return _hold_ended(scene, body.ops, body.error)
    if execution.phase == "doubt" and body.notes is not None and "in_doubt" in body.notes:
        return [_happened(scene, body.ops, body.output)]
    if execution.phase == "doubt" and body.error is not None and body.error.code == StateError.code:
        return [_happened(scene, (), None)]
    if execution.phase == "doubt" and body.error is not None and body.error.code == "outcome_unknown":
        return [answered_message(scene.hold("doubt") or scene.hold("doubt_step"), {"decision": "fail"})]
    if node.kind is NodeKind.timer and SETTLED not in execution.subs:
        return [TimerFired(token=execution.token)]
    return [finished(scene, execution, body)]


def finished(scene: ReplayStep, execution: Exec, body: StepBody) -> HandlerFinished:
    """How the handler ended, from its step record."""
    node = scene.node(execution)
    walk: dict[str, Any] = body.walk or {}
    notes: dict[str, Any] = body.notes or {}
    rerouted = notes.get("action") == "reroute" and node.guard is not None
    return HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=scene.record.visit,
        ops=list(body.ops),
        output=body.output,
        promoted=body.promoted,
        outcome=scene.record.outcome,
        routes=_routes(scene, body.routes),
        reroute=node.guard.reroute if rerouted and node.guard is not None else None,
        error=body.error,
        reported=body.error is not None,
        duration=body.duration,
        usage=body.usage,
        notes=body.notes,
        label=walk.get(SKIPS_BY, walk.get("label", "")),
        suggested=tuple(walk.get("suggested", ())),
    )


def _routes(scene: ReplayStep, routes: list[int] | None) -> list[int] | None:
    """What code chose, by the names of the edges: another version may number them differently."""
    if routes is None or scene.graph is scene.journal_graph:
        return routes
    scope = scene.pos.scopes[scene.record.scope]
    now, then = scene.pos.scope_graph(scene.graph, scope), scene.pos.scope_graph(scene.journal_graph, scope)
    numbers = {edge.id: i for i, edge in enumerate(now.edges)}
    names = [then.edges[e].id for e in routes]
    return [numbers[name] for name in names if name in numbers]


def _hold_ended(scene: ReplayStep, ops: Sequence[Any], error: ErrorInfo | None) -> Cause:
    hold = scene.hold("node")
    spec = scene.node(scene.execution).hold
    text = f"{spec.bind if spec else 'decision'}_result"
    nothing: dict[str, Any] = {}
    answer: Any = next((operand for _, key, _, operand in ops if key == text), nothing)
    if not hold:
        return None
    if error is not None and error.code == StateError.code:
        # The answer itself is not in the journal then; that it did not fit is.
        return [answered_message(hold, {})]
    if error is not None or answer.get("expired"):
        return [undecided_message(hold, error)]
    return [answered_message(hold, answer)]


def _happened(scene: ReplayStep, ops: Sequence[Any], value: Any) -> HoldAnswered:
    update = FrozenDict({key: operand for partition, key, _, operand in ops if partition == "scratch"})
    data = FrozenDict({"update": update, "value": value})
    return answered_message(scene.hold("doubt"), {"decision": "happened", "response_data": data})


# ---------------------------------------------------------------------- sub-steps


def proven(record: Record, body: SubstepBody) -> SubstepEvidence:
    """Late evidence about a sub-step, from its record."""
    return SubstepEvidence(ordinal=body.ordinal, name=body.name, value=body.value, effect=record.effect)


def _substep(scene: ReplayStep) -> Cause:
    body: SubstepBody = scene.body
    if body.ordinal == SETTLED:
        return _settled(scene, body.value)
    if not body.hold:
        return ()
    wait = scene.pos.holds.get(body.hold)
    if wait is None:
        return None
    if wait.why == "doubt_step" and scene.record.effect != "human":
        result = proven(scene.record, body)
        return [EvidenceArrived(intent=scene.execution.step_intents.get(body.ordinal, -1), evidence=result)]
    if wait.why == "doubt_step":
        data = FrozenDict({"value": body.value})
        return [answered_message(body.hold, {"decision": "happened", "response_data": data})]
    if body.error is not None:
        return [undecided_message(body.hold, body.error)]
    return [answered_message(body.hold, body.value)]


def _settled(scene: ReplayStep, value: Any) -> Cause:
    """The node is done, and its router chooses among its edges next."""
    execution = scene.execution
    node = scene.node(execution)
    if node.kind in PARENTS:
        return None
    if execution.phase == "asked":
        return _hold_ended(scene, value["ops"], None)
    if execution.phase == "doubt":
        return [_happened(scene, value["ops"], value["output"])]
    if node.kind is NodeKind.timer:
        return [TimerFired(token=execution.token)]
    ended = HandlerFinished(scope=execution.scope, node=execution.node, visit=execution.visit)
    ended.ops, ended.outcome, ended.output = list(value["ops"]), value["outcome"], value["output"]
    ended.duration, ended.notes = value["duration"], value["notes"]
    ended.error = NO_ERROR if value["outcome"] == "skipped" else None
    return [ended]


# ---------------------------------------------------------------------- questions and the end


def _asked(scene: ReplayStep) -> Cause:
    body: AskedBody = scene.body
    why, _, key = body.key.partition(":")
    if why == "ask":
        return ()
    if why == "code":
        nodes = list(body.context.get("nodes", ()))
        return [CodeChanged(old=body.context.get("old", ""), new=key, nodes=nodes)]
    if why in ("node", "break"):
        return None
    execution, text = scene.execution, body.context.get("error")
    error = None if text is None else ErrorInfo("", text["type"], text["message"])
    if why == "doubt" and scene.policy(scene.node(execution)) is InDoubt.probe:
        ended = failed_message(execution, error, probe="unknown")
        ended.error = error
        return [ended]
    return _lost(scene, body) if error is None else [doubt_message(execution, key, error)]


def _end(scene: ReplayStep) -> Cause:
    body: EndBody = scene.body
    if body.status == "cancelled":
        return [CancelRequested(reason=scene.reason), HandlersStopped()]
    return [HandlersStopped()] if body.status == "failed" else None


_CAUSES: dict[Kind, Callable[[ReplayStep], Cause]] = {
    Kind.step: _step,
    Kind.substep: _substep,
    Kind.attempt: attempt_cause,
    Kind.asked: _asked,
    Kind.end: _end,
}
