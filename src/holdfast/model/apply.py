"""Applies one record to a position: how each kind changes it. The worker and every reader use this.

Attempt records: what happened to an execution between its start and its settle, and to the run beside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from holdfast.errors import CheckpointCorruptError
from holdfast.model.branch_deltas import Delta
from holdfast.model.branch_ordinals import BRANCH, given_up, is_decision
from holdfast.model.budget_ledger import LEDGER, apply_ledger, busy_time, end_call, reopen, spend
from holdfast.model.child_scopes import PARENTS, collects, result_of
from holdfast.model.graph import Graph
from holdfast.model.migration import MIGRATED
from holdfast.model.moves import apply_moves
from holdfast.model.position import (
    NAP,
    SETTLED,
    STEP_RETRY,
    STEP_WOKE,
    Exec,
    OpenHold,
    Position,
    Sub,
    close_waits,
    find_exec,
    new_scope,
)
from holdfast.model.record_bodies import (
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
from holdfast.model.snapshot import load_position
from holdfast.types.record import Kind, Record
from holdfast.types.value import FrozenDict

# These only inform a reader; apart from their moves they change nothing.
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
    elif body.reason in (STEP_RETRY, STEP_WOKE):
        _substep_retried(pos, find_exec(graph, pos, record), body)
    elif body.reason == "failing":
        pos.failing, pos.failed_node = body.error, record.node
    else:
        _of_execution(pos, find_exec(graph, pos, record), record, body, anew=bool(graph.dialect))


def _substep_retried(pos: Position, execution: Exec, body: AttemptBody) -> None:
    """A sub-step waits for its next attempt, or its wait is over."""
    key, name, failures = body.nodes
    before = execution.subs.get(key)
    if before is not None:
        pos.timers.pop(before.hold, None)
    execution.subs[key] = Sub(name, body.wake_at, None, body.token, done=False, failures=int(failures))
    # The attempt has ended, and is known to have done nothing.
    execution.step_intents.pop(key, None)
    execution.step_names.pop(key, None)
    if body.token:
        pos.timers[body.token] = (execution.scope, execution.node)
    spend(pos, body.usage)
    end_call(pos, execution, key, body.usage)


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
    """The node runs again, at once or when its timer fires."""
    if body.reason == "resumed":
        execution.passed = execution.passed and execution.phase != "failed"
        pos.failing, pos.failed_node, pos.status = None, "", "running"
        reopen(pos)
        if execution.items is None:
            # Its attempts count from 1 again. (Those of a map or sub-flow are part of its children's names:
            # they continue.)
            execution.failures = 0
    if body.reason == "retry":
        execution.failures += 1
    if body.reason in ("restarted", "in_doubt", "woke"):
        close_waits(pos, execution)
    if body.reason in ("retry", "resumed") and anew:
        # A stage of a pipeline reports its outcome itself: a retry has to do all of it again.
        close_waits(pos, execution)
        execution.subs = {}
    elif body.reason in ("retry", "resumed"):
        cause = body.error if body.reason == "retry" else execution.error
        execution.subs = {k: sub for k, sub in execution.subs.items() if _stays(sub, cause)}
    execution.attempt = record.attempt
    execution.error = body.error
    if body.reason != "resumed" or execution.phase != "doubt":
        # The end of its run has closed the question, but not answered it.
        execution.intent = -1
        execution.step_intents, execution.step_names = {}, {}
    execution.wake_at = body.wake_at
    execution.chunks, execution.lines, execution.emitted = 0, 0, False
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


def _stays(sub: Sub, cause: ErrorInfo | None) -> bool:
    """Whether the next attempt of the node finds it. Sub-steps that failed are retried; an answer, and the
    expiry of a question, stay as they are, and so does the final error of a sub-step with retries of its own:
    the script may have handled it. A resume repeats that one only if the node failed because of it."""
    if sub.error is None or sub.hold:
        return True
    return sub.failures > 0 and (cause is None or cause.message != sub.error.summary)


def end_limit(pos: Position, execution: Exec) -> None:
    """The time limit of its branches has passed."""
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
    """A child's failure was passed to its owner, which handles it."""
    owner = find_exec(graph, pos, record)
    node = pos.scope_graph(graph, pos.scopes[owner.scope]).nodes[owner.node]
    if collects(node, owner) and body.error is not None:
        index = next(b for what, _, _, b in body.moves if what == "W")
        child = next(
            s for s in pos.scopes.values() if s.owner == (owner.scope, owner.node) and s.index == index
        )
        owner.results[index] = result_of(graph, pos, child, body.error)
    apply_moves(graph, pos, body.moves)
    if body.error is not None:
        forgive(graph, pos, owner, body.error)


def forgive(graph: Graph, pos: Position, owner: Exec, error: ErrorInfo) -> None:
    """The owner handles this error: the run does not fail because of it, but still fails because of any
    other."""
    owner.error = error
    if pos.failing != error:
        return
    pos.failing, pos.failed_node = None, ""
    left = next((e for e in pos.execs.values() if e.phase == "failed"), None)
    if left is not None:
        pos.failing = left.error
        pos.failed_node = pos.scope_graph(graph, pos.scopes[left.scope]).nodes[left.node].id


def apply_record(graph: Graph, pos: Position, record: Record, body: Any) -> None:
    """Advance `pos` by one record. Raises CheckpointCorruptError if the record does not follow `pos.head`."""
    if record.seq != pos.head + 1:
        raise CheckpointCorruptError(f"run {pos.run}: record {record.seq} does not follow record {pos.head}")
    pos.head = record.seq
    pos.at = max(pos.at, record.at)
    _APPLY[record.kind](graph, pos, record, body)


def _created(graph: Graph, pos: Position, _record: Record, body: CreatedBody) -> None:
    values = {
        "input": body.input if isinstance(body.input, FrozenDict) else FrozenDict({"input": body.input}),
        "scratch": dict(body.scratch),
        "artifacts": dict(body.artifacts),
    }
    pos.mode = body.mode
    set_options(pos, body.options)
    pos.scopes[""] = new_scope("", "", values)
    apply_moves(graph, pos, body.moves)


def set_options(pos: Position, options: dict[str, Any]) -> None:
    """The options that this run was started with."""
    pos.breaks = list(options.get("breaks", ()))
    pos.skills = [dict(pin) for pin in options.get("skills", ())]
    pos.strict_names = bool(options.get("strict_names"))
    chosen = options.get("checkpoints")
    if chosen:
        pos.checkpoints = {**chosen, "exclude": list(chosen.get("exclude", ()))}


def _intent(graph: Graph, pos: Position, record: Record, body: IntentBody) -> None:
    execution = find_exec(graph, pos, record)
    if body.ordinal == LEDGER:
        apply_ledger(pos, execution, record.seq, body)
    elif body.ordinal < 0:
        execution.intent = record.seq
    elif not body.key:
        # With an idempotency key the sub-step may simply run again: there is nothing to doubt.
        execution.step_intents[body.name] = record.seq
        execution.step_names[body.name] = body.facts["step"] if body.facts else ""


def _substep(graph: Graph, pos: Position, record: Record, body: SubstepBody) -> None:
    execution = find_exec(graph, pos, record)
    before = execution.subs.get(body.ordinal)
    if before is not None and not before.done:
        pos.timers.pop(before.hold, None)
    execution.subs[body.ordinal] = Sub(body.name, body.value, body.error, body.hold, failures=body.failures)
    execution.step_intents.pop(body.ordinal, None)
    execution.step_names.pop(body.ordinal, None)
    execution.code = execution.code or body.code
    spend(pos, body.usage)
    end_call(pos, execution, body.ordinal, body.usage)
    if body.ordinal == SETTLED:
        execution.phase = "work"
        execution.intent = -1
        close_waits(pos, execution)
        execution.token = ""
    if body.hold:
        open_hold = pos.holds.pop(body.hold, None)
        if open_hold is not None and open_hold.token:
            pos.timers.pop(open_hold.token, None)
        # Another answer, for a branch beside it, does not say whether the effect of a step happened.
        is_other = open_hold is not None and open_hold.why != "doubt_step"
        if execution.phase == "doubt" and not (is_other and _has_step_in_doubt(pos, execution)):
            execution.phase = "work"
    elif body.value and is_decision(body.ordinal):
        _give_up_branches(pos, execution, body.ordinal, str(body.value[BRANCH]))


def _has_step_in_doubt(pos: Position, execution: Exec) -> bool:
    place = (execution.scope, execution.node)
    return any(hold.why == "doubt_step" and (hold.scope, hold.node) == place for hold in pos.holds.values())


def _give_up_branches(pos: Position, execution: Exec, path: str, winner: str) -> None:
    """It is decided among the branches of a script: the others wait for nothing any more."""
    for ordinal, sub in list(given_up(execution.subs, path, winner)):
        del execution.subs[ordinal]
        pos.timers.pop(sub.hold, None)
        waiting = pos.holds.pop(sub.hold, None)
        if waiting is not None and waiting.token:
            pos.timers.pop(waiting.token, None)


def _asked(graph: Graph, pos: Position, record: Record, body: AskedBody) -> None:
    why, _, key = body.key.partition(":")
    if why == "code":
        pos.holds[body.hold] = OpenHold("", -1, why, key)
        return
    execution = find_exec(graph, pos, record, key if why == "break" else "")
    pos.holds[body.hold] = OpenHold(
        record.scope, execution.node, why, key, body.ordinal, body.on_timeout, body.token, body.expires_at
    )
    if body.token:
        pos.timers[body.token] = (record.scope, execution.node)
    if why == "node":
        execution.phase = "asked"
    elif why == "break":
        execution.phase = "break"
    elif why == "ask":
        execution.subs[key] = Sub(body.prompt, None, None, body.hold, done=False)
        execution.code = execution.code or body.code
    else:
        execution.phase = "doubt"


def _chunk(graph: Graph, pos: Position, record: Record, body: ChunkBody) -> None:
    execution = find_exec(graph, pos, record)
    if not body.inside:
        execution.chunks += len(body.items) - body.lines
        execution.lines += body.lines
    execution.emitted = True


def _step(graph: Graph, pos: Position, record: Record, body: StepBody) -> None:
    execution = find_exec(graph, pos, record)
    settle_exec(graph, pos, execution, record, body)
    if body.walk is not None:
        pos.scopes[record.scope].walk = dict(body.walk)
    apply_moves(graph, pos, body.moves, execution.frame)


def settle_exec(graph: Graph, pos: Position, execution: Exec, record: Record, body: StepBody) -> None:
    """What a settled step changes before its edges fire. Also used by the engine on the way there."""
    scope = pos.scopes[record.scope]
    ops = body.ops
    if body.output is not None:
        # As a change of the state: which of several outputs is the scope's does not depend on which was last.
        ops = [*ops, ("aux", "output", "set", body.output)]
    delta = Delta(record.seq, execution.node, execution.visit, scope.index, ops)
    if body.halts:
        if ops:
            # The details that a handler gave of its failure can be read, even if no edge handles the failure.
            scope.tree.settle(execution.frame, delta)
        _failed(pos, execution, record, body)
        return
    scope.tree.settle(execution.frame, delta)
    del pos.execs[(record.scope, execution.node)]
    scope.active -= 1
    if pos.holds or execution.token or pos.timers:
        close_waits(pos, execution)
    _count(pos, execution, body)


def _failed(pos: Position, execution: Exec, record: Record, body: StepBody) -> None:
    """A failure that is not handled: the execution stays, so that a resume can run it again (G-36)."""
    execution.phase = "failed"
    execution.error = body.error
    execution.intent = -1
    close_waits(pos, execution)
    if pos.failing is None:
        pos.failing, pos.failed_node = body.error, record.node


def _count(pos: Position, execution: Exec, body: StepBody) -> None:
    totals = pos.totals
    if execution.spent:
        pos.ledger.micros += max(0, busy_time(execution) - body.duration)
    totals["steps"] = totals.get("steps", 0) + 1
    totals["duration"] = totals.get("duration", 0) + body.duration
    if body.usage is not None:
        spend(pos, body.usage)


def _snapshot(_graph: Graph, pos: Position, record: Record, body: Any) -> None:
    """A snapshot changes nothing, it only makes loading fast; but a migration starts from one."""
    if record.outcome == MIGRATED:
        fresh = load_position(body.position)
        fresh.head, fresh.at = pos.head, pos.at
        for name in pos.__struct_fields__:
            setattr(pos, name, getattr(fresh, name))


def _end(_graph: Graph, pos: Position, _record: Record, body: EndBody) -> None:
    pos.status = body.status
    pos.holds.clear()
    pos.timers.clear()
    pos.join_wakes.clear()
    pos.cancelling = None


_APPLY: dict[int, Callable[[Graph, Position, Record, Any], None]] = {
    Kind.created: _created,
    Kind.intent: _intent,
    Kind.attempt: apply_attempt,
    Kind.substep: _substep,
    Kind.asked: _asked,
    Kind.chunk: _chunk,
    Kind.step: _step,
    Kind.snapshot: _snapshot,
    Kind.end: _end,
}
