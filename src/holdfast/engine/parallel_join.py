"""Parallel nodes: when enough branches are done, the outcome of the join, and its time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.engine import failures, settle
from holdfast.engine.decision import Decision, node_of
from holdfast.engine.messages import HandlerFinished, TimerFired
from holdfast.errors import NodeTimeoutError
from holdfast.model.apply import end_limit
from holdfast.model.branches import GATES
from holdfast.model.graph import Node, ParallelSpec
from holdfast.model.position import Exec
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, StepBody
from holdfast.types.outcome import FAIL
from holdfast.types.record import Kind, Op, Side
from holdfast.types.value import FrozenDict, FrozenList

Results = Mapping[int, Any]
"""By the branch's number; a branch that still runs, or was dropped, has none."""

_NO_SUCCESS = frozenset({FAIL, "partial_success", "retry", "skipped"})
"""Any other word counts as a success: pipelines may name their own outcomes."""


def required_successes(spec: ParallelSpec) -> int | None:
    """How many successes are enough; None: all branches are awaited."""
    return {"first_success": 1, "k_of_n": spec.count}.get(spec.join)


def is_decided(spec: ParallelSpec, results: Results) -> bool:
    if len(results) >= len(spec.starts):
        return True
    if spec.on_branch_failure == "fail_fast" and _failed(results):
        return True
    enough = required_successes(spec)
    return enough is not None and _successes(results) >= enough


def outcome_of(spec: ParallelSpec, name: str, results: Results) -> tuple[str, ErrorInfo | None]:
    """The node's outcome, and the error if it failed."""
    failed = _failed(results)
    if failed and spec.on_branch_failure == "fail_fast":
        first = failed[0]
        return FAIL, _error(f"branch {first['id']!r} of {name!r} failed: {first['failure_reason']}")
    enough = required_successes(spec)
    if enough is not None and _successes(results) < enough:
        successes = f"{_successes(results)} of {len(spec.starts)} branches of {name!r} succeeded"
        policy = spec.join if spec.join == "first_success" else "its join"
        return FAIL, _error(f"{successes}, and {policy} needs {enough}")
    if spec.join == "wait_all" and failed and spec.on_branch_failure != "ignore":
        return "partial_success", None
    return "success", None


def ops_of(spec: ParallelSpec, results: Results) -> list[Op]:
    """The results that stages after the join read, in the order of the branches."""
    kept = [results[i] for i in sorted(results)]
    if spec.on_branch_failure == "ignore":
        kept = [result for result in kept if result["outcome"] != FAIL]
    shown = [FrozenDict({k: v for k, v in result.items() if k != GATES}) for result in kept]
    return [("scratch", spec.into, "set", FrozenList(shown))]


def gates_of(results: Results) -> dict[str, bool]:
    """A gate that several branches visited is satisfied if all of them satisfied it."""
    gates: dict[str, bool] = {}
    for i in sorted(results):
        for name, met in results[i][GATES].items():
            gates[name] = gates.get(name, True) and met
    return gates


def _failed(results: Results) -> list[Any]:
    return [results[i] for i in sorted(results) if results[i]["outcome"] == FAIL]


def _successes(results: Results) -> int:
    return sum(1 for result in results.values() if result["outcome"] not in _NO_SUCCESS)


def _error(message: str) -> ErrorInfo:
    return ErrorInfo("node_failed", "NodeFailedError", message)


def drop_losers(decision: Decision, owner: Exec, body: StepBody) -> None:
    """The join is decided: what still runs in other branches is stopped, in the record that decided it."""
    # The record of the branch that decided it, so that a crash cannot leave losers running beside a winner.
    record = decision.records[-1][0]
    mine = (owner.scope, owner.node)
    for loser in [scope for scope in decision.pos.scopes.values() if scope.owner == mine]:
        failures.wipe(decision, loser, record, body, "V")


def timed_out(decision: Decision, owner: Exec, message: TimerFired) -> None:
    """The branches took longer than the node's timeout: their results so far are stored, and the node
    fails."""
    pos, node = decision.pos, node_of(decision.graph, decision.pos, owner)
    successes = f"node {node.id!r} took longer than {(node.timeout or 0) / 1e6:g} s"
    error = ErrorInfo(NodeTimeoutError.code, "NodeTimeoutError", successes)
    body = AttemptBody("timed_out", error)
    side = Side(inbox_done=[message.inbox]) if message.inbox else Side(close_timers=[owner.token])
    record = decision.draft(Kind.attempt, body, node=node.id, execution=owner, effect=node.effect, side=side)
    pos.head, pos.at = record.seq, record.at
    for scope in [s for s in pos.scopes.values() if s.owner == (owner.scope, owner.node)]:
        failures.wipe(decision, scope, record, body, "V")
    end_limit(pos, owner)
    late = HandlerFinished(
        scope=owner.scope,
        node=owner.node,
        visit=owner.visit,
        ops=ops_of(node.parallel, owner.results) if node.parallel else [],
        outcome="fail",
        error=error,
        reported=True,
        retryable=node.retry.attempts > 1,
        gates=gates_of(owner.results),
    )
    failures.on_attempt_failed(decision, owner, late)


def settle_join(decision: Decision, owner: Exec, node: Node, spec: ParallelSpec) -> None:
    """The results of the branches are written to the state before the node settles or fails."""
    outcome, error = outcome_of(spec, node.id, owner.results)
    joined = HandlerFinished(
        scope=owner.scope,
        node=owner.node,
        visit=owner.visit,
        ops=ops_of(spec, owner.results),
        outcome=outcome,
        error=error,
        reported=error is not None,
        retryable=node.retry.attempts > 1,
        gates=gates_of(owner.results),
        duration=max(0, decision.now - decision.pos.at),
    )
    settle.on_handler_finished(decision, joined)
