"""Attempt records: what happened to an execution between its start and its settle, and to the run beside."""

from __future__ import annotations

import msgspec

from holdfast.model.child_scopes import PARENTS, collects, result_of
from holdfast.model.graph import Graph
from holdfast.model.moves import apply_moves
from holdfast.model.position import NAP, Exec, Position, Sub, close_waits, find_exec
from holdfast.model.record_bodies import AttemptBody, ErrorInfo
from holdfast.types.record import Record

# These tell a reader something; beyond their moves they change nothing.
NOTED = frozenset(
    {
        "ignored",
        "join_timeout",
        "children",
        "before",
        "fell_back",
        "damaged",
        "loaded",
        "uncheckpointed",
    }
)


def apply_attempt(graph: Graph, pos: Position, record: Record, body: AttemptBody) -> None:
    if body.reason == "child_failed":
        _child_failed(graph, pos, record, body)
        return
    if body.moves:
        apply_moves(graph, pos, body.moves)
    if body.reason in NOTED:
        return
    if body.reason == "code_changed":
        _code_changed(pos, body.token)
    elif body.reason == "breaks":
        kept = msgspec.json.decode(body.token)
        pos.breaks, pos.breaks_off = kept["breaks"], kept["off"]
    elif body.reason == "continued":
        _continued(graph, pos, find_exec(graph, pos, record), body.token)
    elif body.reason == "join_timer":
        node = pos.scope_graph(graph, pos.scopes[record.scope]).node_index(record.node)
        pos.timers[body.token] = (record.scope, node)
        pos.join_wakes[body.token] = body.wake_at or 0
    elif body.reason == "limit":
        execution = find_exec(graph, pos, record)
        execution.token, execution.wake_at = body.token, body.wake_at
        pos.timers[body.token] = (record.scope, execution.node)
    elif body.reason == "timed_out":
        end_limit(pos, find_exec(graph, pos, record))
    elif body.reason == "nap":
        execution, key = find_exec(graph, pos, record), body.nodes[0]
        execution.subs[key] = Sub(NAP, body.wake_at, None, body.token, done=False)
        pos.timers[body.token] = (record.scope, execution.node)
    elif body.reason == "failing":
        pos.failing, pos.failed_node = body.error, record.node
    else:
        _of_execution(pos, find_exec(graph, pos, record), record, body, anew=bool(graph.dialect))


def _code_changed(pos: Position, code: str) -> None:
    pos.code = code
    for hold in [h for h, waiting in pos.holds.items() if waiting.why == "code"]:
        del pos.holds[hold]


def _continued(graph: Graph, pos: Position, execution: Exec, hold: str) -> None:
    pos.holds.pop(hold, None)
    node = pos.scope_graph(graph, pos.scopes[execution.scope]).nodes[execution.node]
    execution.passed, execution.phase = True, "children" if node.kind in PARENTS else "work"


def _of_execution(pos: Position, execution: Exec, record: Record, body: AttemptBody, *, anew: bool) -> None:
    if body.reason == "withdrawn":
        execution.intent = -1
    elif body.reason == "not_happened":
        _clear_doubt(pos, execution, body.token)
    else:
        _try_again(pos, execution, record, body, anew=anew)


def _try_again(pos: Position, execution: Exec, record: Record, body: AttemptBody, *, anew: bool) -> None:
    """The node runs once more, at once or when its timer fires."""
    if body.reason == "resumed":
        execution.passed = execution.passed and execution.phase != "failed"
        pos.failing, pos.failed_node, pos.status = None, "", "running"
        if execution.items is None:
            # Its attempts count anew. (Those of a map or sub-flow name its children: they go on counting.)
            execution.failures = 0
    if body.reason == "retry":
        execution.failures += 1
    if body.reason in ("restarted", "in_doubt", "woke"):
        close_waits(pos, execution)
    if body.reason in ("retry", "resumed") and anew:
        # A stage of a pipeline says itself how it ended: tried again, it is all to do again.
        close_waits(pos, execution)
        execution.subs = {}
    elif body.reason in ("retry", "resumed"):
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


def end_limit(pos: Position, execution: Exec) -> None:
    """The time that its branches had is over."""
    pos.timers.pop(execution.token, None)
    execution.token, execution.wake_at = "", None


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
    owner = find_exec(graph, pos, record)
    node = pos.scope_graph(graph, pos.scopes[owner.scope]).nodes[owner.node]
    if collects(node) and body.error is not None:
        index = next(b for what, _, _, b in body.moves if what == "W")
        child = next(
            s for s in pos.scopes.values() if s.owner == (owner.scope, owner.node) and s.index == index
        )
        owner.results[index] = result_of(graph, pos, child, body.error)
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
