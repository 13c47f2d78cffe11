"""What led to a record: the message that the engine was told, read back from what the journal keeps.

A worker is told things (a handler ended, somebody answered, a timer fired) and writes down what came of them.
The journal keeps enough of each to tell the engine the same thing once more, with no user code (D-26).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from holdfast.engine.messages import (
    Answered,
    CancelAsked,
    CodeChanged,
    Finished,
    LateCame,
    Proven,
    Stopped,
    TimerFired,
)
from holdfast.engine.walk_state import SKIPS_BY
from holdfast.errors import StateError
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import InDoubt, NodeKind
from holdfast.model.position import SETTLED, Exec
from holdfast.model.record_bodies import AskedBody, EndBody, ErrorInfo, StepBody, SubstepBody
from holdfast.runs.history.causes__reasons import attempt_cause
from holdfast.runs.history.causes__scene import NO_ERROR, Cause, Scene, doubt, ended_badly, lapse, said
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict


def cause_of(scene: Scene) -> Cause:
    """Raises CheckpointCorruptError where the record is about a node that is not running."""
    return _CAUSES.get(Kind(scene.record.kind), _fact)(scene)


def _fact(_scene: Scene) -> Cause:
    return ()


# ---------------------------------------------------------------------- steps


def _step(scene: Scene) -> Cause:
    body: StepBody = scene.body
    if scene.record.outcome == "unknown" and scene.reason:
        return [CancelAsked(reason=scene.reason), Stopped()]
    cause = _settling(scene, body)
    if cause and scene.reason and ("C", "", 0, 0) in map(tuple, body.moves):
        # Everything was done, and still the run ended as cancelled: it had been asked to stop before.
        return [CancelAsked(reason=scene.reason), *cause]
    return cause


def _settling(scene: Scene, body: StepBody) -> Cause:
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
        return [said(scene.hold("doubt") or scene.hold("doubt_step"), {"decision": "fail"})]
    if node.kind is NodeKind.timer and SETTLED not in execution.subs:
        return [TimerFired(token=execution.token)]
    return [finished(scene, execution, body)]


def finished(scene: Scene, execution: Exec, body: StepBody) -> Finished:
    """How the handler ended, as its step tells."""
    node = scene.node(execution)
    walk: dict[str, Any] = body.walk or {}
    notes: dict[str, Any] = body.notes or {}
    rerouted = notes.get("action") == "reroute" and node.guard is not None
    return Finished(
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


def _routes(scene: Scene, routes: list[int] | None) -> list[int] | None:
    """What code chose, by the names of the edges: another version may number them otherwise."""
    if routes is None or scene.graph is scene.told:
        return routes
    scope = scene.pos.scopes[scene.record.scope]
    now, then = scene.pos.scope_graph(scene.graph, scope), scene.pos.scope_graph(scene.told, scope)
    numbers = {edge.id: i for i, edge in enumerate(now.edges)}
    names = [then.edges[e].id for e in routes]
    return [numbers[name] for name in names if name in numbers]


def _hold_ended(scene: Scene, ops: Sequence[Any], error: ErrorInfo | None) -> Cause:
    hold = scene.hold("node")
    spec = scene.node(scene.execution).hold
    told = f"{spec.bind if spec else 'decision'}_result"
    nothing: dict[str, Any] = {}
    answer: Any = next((operand for _, key, _, operand in ops if key == told), nothing)
    if not hold:
        return None
    if error is not None and error.code == StateError.code:
        # The answer itself is not in the journal then; that it did not fit is.
        return [said(hold, {})]
    if error is not None or answer.get("expired"):
        return [lapse(hold, error)]
    return [said(hold, answer)]


def _happened(scene: Scene, ops: Sequence[Any], value: Any) -> Answered:
    update = FrozenDict({key: operand for partition, key, _, operand in ops if partition == "scratch"})
    data = FrozenDict({"update": update, "value": value})
    return said(scene.hold("doubt"), {"decision": "happened", "response_data": data})


# ---------------------------------------------------------------------- sub-steps


def proven(record: Record, body: SubstepBody) -> Proven:
    """What was told late about a sub-step, as its record has it."""
    return Proven(ordinal=body.ordinal, name=body.name, value=body.value, effect=record.effect)


def _substep(scene: Scene) -> Cause:
    body: SubstepBody = scene.body
    if body.ordinal == SETTLED:
        return _settled(scene, body.value)
    if not body.hold:
        return ()
    wait = scene.pos.holds.get(body.hold)
    if wait is None:
        return None
    if wait.why == "doubt_step" and scene.record.effect != "human":
        told = proven(scene.record, body)
        return [LateCame(intent=scene.execution.step_intents.get(body.ordinal, -1), told=told)]
    if wait.why == "doubt_step":
        data = FrozenDict({"value": body.value})
        return [said(body.hold, {"decision": "happened", "response_data": data})]
    if body.error is not None:
        return [lapse(body.hold, body.error)]
    return [said(body.hold, body.value)]


def _settled(scene: Scene, value: Any) -> Cause:
    """The node is done, and its code chooses among its edges next."""
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
    ended = Finished(scope=execution.scope, node=execution.node, visit=execution.visit)
    ended.ops, ended.outcome, ended.output = list(value["ops"]), value["outcome"], value["output"]
    ended.duration, ended.notes = value["duration"], value["notes"]
    ended.error = NO_ERROR if value["outcome"] == "skipped" else None
    return [ended]


# ---------------------------------------------------------------------- questions and the end


def _asked(scene: Scene) -> Cause:
    body: AskedBody = scene.body
    why, _, key = body.key.partition(":")
    if why == "ask":
        return ()
    if why == "code":
        nodes = list(body.context.get("nodes", ()))
        return [CodeChanged(old=body.context.get("old", ""), new=key, nodes=nodes)]
    if why in ("node", "break"):
        return None
    execution, told = scene.execution, body.context.get("error")
    error = None if told is None else ErrorInfo("", told["type"], told["message"])
    if why == "doubt" and scene.policy(scene.node(execution)) is InDoubt.probe:
        ended = ended_badly(execution, error, probe="unknown")
        ended.error = error
        return [ended]
    return None if error is None else [doubt(execution, key, error)]


def _end(scene: Scene) -> Cause:
    body: EndBody = scene.body
    if body.status == "cancelled":
        return [CancelAsked(reason=scene.reason), Stopped()]
    return [Stopped()] if body.status == "failed" else None


_CAUSES: dict[Kind, Callable[[Scene], Cause]] = {
    Kind.step: _step,
    Kind.substep: _substep,
    Kind.attempt: attempt_cause,
    Kind.asked: _asked,
    Kind.end: _end,
}
