"""One record more: how each kind changes where a run stands. The worker and every reader use this."""

from __future__ import annotations

from typing import Any

from holdfast.errors import CheckpointCorruptError
from holdfast.model.bodies import (
    AskedBody,
    AttemptBody,
    ChunkBody,
    CreatedBody,
    EndBody,
    ErrorInfo,
    IntentBody,
    StepBody,
    SubstepBody,
)
from holdfast.model.children import failed_item
from holdfast.model.deltas import Delta
from holdfast.model.graph import Graph
from holdfast.model.moves import apply_moves
from holdfast.model.position import SETTLED, Exec, OpenHold, Position, Sub, finish_exec, new_scope
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict


def apply_record(graph: Graph, pos: Position, record: Record, body: Any) -> None:
    """Advance `pos` by one record. Raises CheckpointCorruptError where the record does not follow."""
    if record.seq != pos.head + 1:
        raise CheckpointCorruptError(f"run {pos.run}: record {record.seq} does not follow record {pos.head}")
    pos.head = record.seq
    pos.at = max(pos.at, record.at)
    _APPLY[Kind(record.kind)](graph, pos, record, body)


def _created(graph: Graph, pos: Position, _record: Record, body: CreatedBody) -> None:
    values = {
        "input": body.input if isinstance(body.input, FrozenDict) else FrozenDict({"input": body.input}),
        "scratch": dict(body.scratch),
        "artifacts": dict(body.artifacts),
    }
    pos.mode = body.mode
    pos.scopes[""] = new_scope("", "", values)
    apply_moves(graph, pos, body.moves)


def _exec(graph: Graph, pos: Position, record: Record) -> Exec:
    scope = pos.scopes.get(record.scope)
    found = None
    if scope is not None:
        inner = pos.scope_graph(graph, scope)
        found = pos.execs.get((record.scope, inner.index.get(record.node, -1)))
    if found is None:
        raise CheckpointCorruptError(
            f"run {pos.run}: record {record.seq} is about node {record.node!r}, which is not running there"
        )
    return found


def _intent(graph: Graph, pos: Position, record: Record, body: IntentBody) -> None:
    execution = _exec(graph, pos, record)
    if body.ordinal < 0:
        execution.intent = record.seq
    elif not body.key:
        # With an idempotency key the sub-step may simply run again: there is nothing to doubt.
        execution.step_intents[body.name] = record.seq
        execution.step_names[body.name] = body.facts["step"] if body.facts else ""


def _attempt(graph: Graph, pos: Position, record: Record, body: AttemptBody) -> None:
    if body.reason == "child_failed":
        _child_failed(graph, pos, record, body)
        return
    if body.moves:
        apply_moves(graph, pos, body.moves)
    if body.reason in (
        "ignored",
        "join_timeout",
        "children",
        "before",
        "fell_back",
        "damaged",
        "loaded",
        "uncheckpointed",
    ):
        return
    if body.reason == "code_changed":
        pos.code = body.token
        for hold in [h for h, waiting in pos.holds.items() if waiting.why == "code"]:
            del pos.holds[hold]
        return
    if body.reason == "join_timer":
        pos.timers[body.token] = (record.scope, graph_index(graph, pos, record))
        pos.join_wakes[body.token] = body.wake_at or 0
        return
    if body.reason == "failing":
        pos.failing, pos.failed_node = body.error, record.node
        return
    execution = _exec(graph, pos, record)
    if body.reason == "withdrawn":
        execution.intent = -1
        return
    if body.reason == "not_happened":
        _clear_doubt(pos, execution, body.token)
        return
    if body.reason == "resumed":
        pos.failing, pos.failed_node, pos.status = None, "", "running"
        if execution.items is None:
            # Its attempts count anew. (Those of a map or sub-flow name its children: they go on counting.)
            execution.failures = 0
    if body.reason == "retry":
        execution.failures += 1
    if body.reason in ("restarted", "in_doubt", "woke"):
        _close_waits(pos, execution)
    if body.reason in ("retry", "resumed"):
        # What failed inside is tried again; an answer, and a question that nobody answered, stand.
        execution.subs = {k: sub for k, sub in execution.subs.items() if sub.error is None or sub.hold}
    execution.attempt = record.attempt
    execution.error = body.error
    execution.intent = -1
    execution.step_intents, execution.step_names = {}, {}
    execution.wake_at = body.wake_at
    execution.chunks, execution.emitted = 0, False
    if execution.token:
        pos.timers.pop(execution.token, None)
    execution.token = body.token
    execution.phase = "delay" if body.wake_at is not None else "work"
    if execution.items is not None:
        execution.opened, execution.results = 0, {}
        if body.wake_at is None:
            execution.phase = "children"
    if body.token:
        pos.timers[body.token] = (record.scope, execution.node)


def _clear_doubt(pos: Position, execution: Exec, key: str) -> None:
    """One sub-step certainly did not happen; others may still be in doubt."""
    execution.step_intents.pop(key, None)
    execution.step_names.pop(key, None)
    execution.phase = "work"
    for hold, waiting in list(pos.holds.items()):
        same = (waiting.scope, waiting.node, waiting.key) == (execution.scope, execution.node, key)
        if same and waiting.why == "doubt_step":
            del pos.holds[hold]


def _child_failed(graph: Graph, pos: Position, record: Record, body: AttemptBody) -> None:
    """A child's failure was handed to its owner, which copes with it."""
    owner = _exec(graph, pos, record)
    node = pos.scope_graph(graph, pos.scopes[owner.scope]).nodes[owner.node]
    if node.map is not None and node.map.on_item_failure == "collect" and body.error is not None:
        owner.results[next(b for what, _, _, b in body.moves if what == "W")] = failed_item(body.error)
    apply_moves(graph, pos, body.moves)
    if body.error is not None:
        forgive(graph, pos, owner, body.error)


def forgive(graph: Graph, pos: Position, owner: Exec, error: ErrorInfo) -> None:
    """The owner copes with this error: the run does not fail by it, but still by any other."""
    owner.error = error
    if pos.failing != error:
        return
    pos.failing, pos.failed_node = None, ""
    left = next((e for e in pos.execs.values() if e.phase == "failed"), None)
    if left is not None:
        pos.failing = left.error
        pos.failed_node = pos.scope_graph(graph, pos.scopes[left.scope]).nodes[left.node].id


def graph_index(graph: Graph, pos: Position, record: Record) -> int:
    return pos.scope_graph(graph, pos.scopes[record.scope]).node_index(record.node)


def _substep(graph: Graph, pos: Position, record: Record, body: SubstepBody) -> None:
    execution = _exec(graph, pos, record)
    execution.subs[body.ordinal] = Sub(body.name, body.value, body.error, body.hold)
    execution.step_intents.pop(body.ordinal, None)
    execution.step_names.pop(body.ordinal, None)
    execution.code = execution.code or body.code
    if body.ordinal == SETTLED:
        execution.phase = "work"
        execution.intent = -1
        _close_waits(pos, execution)
        execution.token = ""
    if body.hold:
        open_hold = pos.holds.pop(body.hold, None)
        if open_hold is not None and open_hold.token:
            pos.timers.pop(open_hold.token, None)
        if execution.phase == "doubt":
            execution.phase = "work"


def _asked(graph: Graph, pos: Position, record: Record, body: AskedBody) -> None:
    why, _, key = body.key.partition(":")
    if why == "code":
        pos.holds[body.hold] = OpenHold("", -1, why, key)
        return
    execution = _exec(graph, pos, record)
    pos.holds[body.hold] = OpenHold(
        record.scope, execution.node, why, key, body.ordinal, body.on_timeout, body.token, body.expires_at
    )
    if body.token:
        pos.timers[body.token] = (record.scope, execution.node)
    if why == "node":
        execution.phase = "asked"
    elif why == "ask":
        execution.subs[key] = Sub(body.prompt, None, None, body.hold, done=False)
        execution.code = execution.code or body.code
    else:
        execution.phase = "doubt"


def _chunk(graph: Graph, pos: Position, record: Record, body: ChunkBody) -> None:
    execution = _exec(graph, pos, record)
    if not body.inside:
        execution.chunks += len(body.items)
    execution.emitted = True


def _step(graph: Graph, pos: Position, record: Record, body: StepBody) -> None:
    execution = _exec(graph, pos, record)
    settle_exec(graph, pos, execution, record, body)
    if body.walk is not None:
        pos.scopes[record.scope].walk = dict(body.walk)
    apply_moves(graph, pos, body.moves, execution.frame)
    end_frame(pos, record, execution, body)


def settle_exec(graph: Graph, pos: Position, execution: Exec, record: Record, body: StepBody) -> None:
    """What a settled step changes before its edges fire. Also used by the engine on the way there."""
    scope = pos.scopes[record.scope]
    ops = body.ops
    if body.output is not None:
        # As a change of the state: which of several outputs is the scope's does not depend on who was last.
        ops = [*ops, ("aux", "output", "set", body.output)]
    delta = Delta(record.seq, execution.node, execution.visit, scope.index, ops)
    if body.halts:
        _failed(pos, execution, record, body)
        return
    finish_exec(pos, scope, execution, delta)
    _close_waits(pos, execution)
    _count(pos, body)


def _failed(pos: Position, execution: Exec, record: Record, body: StepBody) -> None:
    """A failure that nothing handles: the execution stays, so that a resume can run it again (G-36)."""
    execution.phase = "failed"
    execution.error = body.error
    execution.intent = -1
    _close_waits(pos, execution)
    if pos.failing is None:
        pos.failing, pos.failed_node = body.error, record.node


def end_frame(pos: Position, record: Record, execution: Exec, body: StepBody) -> None:
    """A branch that fired nothing is at its end."""
    scope = pos.scopes.get(record.scope)
    if scope is None or execution.frame == 0 or execution.phase == "failed":
        return
    if not any(move[0] in "GFNE" and move[1] == record.scope for move in body.moves):
        scope.tree.end(execution.frame)


def _close_waits(pos: Position, execution: Exec) -> None:
    if execution.token:
        pos.timers.pop(execution.token, None)
    if pos.holds:
        mine = [
            hold
            for hold, waiting in pos.holds.items()
            if waiting.node == execution.node and waiting.scope == execution.scope
        ]
        for hold in mine:
            token = pos.holds.pop(hold).token
            pos.timers.pop(token, None)


def _count(pos: Position, body: StepBody) -> None:
    totals = pos.totals
    totals["steps"] = totals.get("steps", 0) + 1
    totals["duration"] = totals.get("duration", 0) + body.duration
    if body.usage is not None:
        totals["tokens"] = totals.get("tokens", 0) + body.usage.tokens
        totals["cost"] = totals.get("cost", 0) + body.usage.cost


def _snapshot(_graph: Graph, _pos: Position, _record: Record, _body: Any) -> None:
    """A snapshot changes nothing: it only makes loading short."""


def _end(_graph: Graph, pos: Position, _record: Record, body: EndBody) -> None:
    pos.status = body.status
    pos.holds.clear()
    pos.timers.clear()
    pos.join_wakes.clear()
    pos.cancelling = None


_APPLY = {
    Kind.created: _created,
    Kind.intent: _intent,
    Kind.attempt: _attempt,
    Kind.substep: _substep,
    Kind.asked: _asked,
    Kind.chunk: _chunk,
    Kind.step: _step,
    Kind.snapshot: _snapshot,
    Kind.end: _end,
}
