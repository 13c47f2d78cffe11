"""What led to an attempt record: why a node was tried again, went on, or the run was told something."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from holdfast.engine.messages import BreaksSet, CodeChanged, ResumeAsked, TimerFired
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import InDoubt
from holdfast.model.position import Position
from holdfast.model.record_bodies import AttemptBody
from holdfast.runs.history.causes__scene import Cause, Scene, doubt, ended_badly, said

FACTS: Final = frozenset({"withdrawn", "loaded", "uncheckpointed", "damaged", "ignored", "fell_back", "nap"})
"""Attempt records that a worker writes on its own account: nothing is decided by them."""


def attempt_cause(scene: Scene) -> Cause:
    body: AttemptBody = scene.body
    if body.reason in FACTS:
        return ()
    cause = _REASONS.get(body.reason)
    return None if cause is None else cause(scene, body)


def _retry(scene: Scene, body: AttemptBody) -> Cause:
    execution = scene.execution
    if scene.node(execution).kind in PARENTS:
        return None
    return [ended_badly(execution, body.error, retryable=True)]


def _in_doubt(scene: Scene, _body: AttemptBody) -> Cause:
    execution = scene.execution
    policy = scene.policy(scene.node(execution))
    if execution.phase == "doubt":
        return [said(scene.hold("doubt"), {"decision": "not_happened"})]
    if policy is InDoubt.probe and not execution.step_intents:
        return [ended_badly(execution, None, probe="not_happened")]
    return [doubt(execution, next(iter(execution.step_intents), ""), None)]


def _not_happened(scene: Scene, body: AttemptBody) -> Cause:
    return [said(scene.hold("doubt_step", body.token), {"decision": "not_happened"})]


def _woke(scene: Scene, _body: AttemptBody) -> Cause:
    return [TimerFired(token=scene.execution.token)]


def _resumed(_scene: Scene, _body: AttemptBody) -> Cause:
    return [ResumeAsked()]


def _join_timeout(scene: Scene, _body: AttemptBody) -> Cause:
    pos, record = scene.pos, scene.record
    inner = pos.scope_graph(scene.graph, pos.scopes[record.scope])
    here = (record.scope, inner.index.get(record.node, -1))
    token = next((t for t, key in pos.timers.items() if key == here and t in pos.join_wakes), "")
    return [TimerFired(token=token)] if token else None


def _code_hold(pos: Position) -> str:
    return next((hold for hold, wait in pos.holds.items() if wait.why == "code"), "")


def _code_changed(scene: Scene, body: AttemptBody) -> Cause:
    hold = _code_hold(scene.pos)
    if hold:
        return [said(hold, {"decision": "accept"})]
    return [CodeChanged(old=scene.pos.code, new=body.token, nodes=list(body.nodes))]


def _breaks(_scene: Scene, body: AttemptBody) -> Cause:
    kept: dict[str, Any] = msgspec.json.decode(body.token)
    return [BreaksSet(breaks=list(kept["breaks"]), off=kept["off"])]


def _continued(scene: Scene, body: AttemptBody) -> Cause:
    return [said(body.token, {"decision": "continue"})]


def _failing(scene: Scene, _body: AttemptBody) -> Cause:
    hold = _code_hold(scene.pos)
    if hold:
        return [said(hold, {"decision": "refuse"})]
    return [ResumeAsked()] if scene.pos.failing is not None else None


_REASONS: dict[str, Callable[[Scene, AttemptBody], Cause]] = {
    "retry": _retry,
    "in_doubt": _in_doubt,
    "not_happened": _not_happened,
    "woke": _woke,
    "resumed": _resumed,
    "join_timeout": _join_timeout,
    "timed_out": _woke,
    "code_changed": _code_changed,
    "failing": _failing,
    "breaks": _breaks,
    "continued": _continued,
}
