"""Effects whose outcome is unknown: the policy of their node or flow decides what follows (D-15)."""

from __future__ import annotations

from holdfast.engine import failures, holds, retry, settle
from holdfast.engine.decision import Decision, node_of
from holdfast.engine.messages import HandlerFinished, SubstepDoubted
from holdfast.model.graph import InDoubt, Node
from holdfast.model.position import Exec
from holdfast.model.record_bodies import ErrorInfo


def in_doubt(decision: Decision, execution: Exec, node: Node, error: ErrorInfo | None) -> None:
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        retry.restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        failures.give_up(decision, execution, error or _unknown(f"node {node.id!r}"))
    elif policy is InDoubt.probe:
        decision.probes.append(execution)
    else:
        holds.ask_doubt(decision, execution, error)


def on_probe_finished(decision: Decision, execution: Exec, message: HandlerFinished) -> None:
    """The node's probe has finished: the effect happened, did not happen, or is still unknown."""
    if message.probe == "happened":
        settle.settle(decision, execution, message)
    elif message.probe == "not_happened":
        retry.restart(decision, execution, "in_doubt")
    else:
        holds.ask_doubt(decision, execution, message.error)


def on_substep_doubted(decision: Decision, message: SubstepDoubted) -> None:
    """The same policy as for a node, for one sub-step of it."""
    execution = decision.pos.execs.get((message.scope, message.node))
    if execution is None or execution.visit != message.visit:
        return
    node = node_of(decision.graph, decision.pos, execution)
    _step_in_doubt(decision, execution, node, message.substep, message.error)


def _step_in_doubt(
    decision: Decision, execution: Exec, node: Node, substep: str, error: ErrorInfo | None
) -> None:
    policy = node.in_doubt or decision.graph.spec.in_doubt
    if policy is InDoubt.retry:
        retry.restart(decision, execution, "in_doubt")
    elif policy is InDoubt.fail:
        name = execution.step_names.get(substep, substep)
        failures.give_up(decision, execution, error or _unknown(f"step {name!r} of node {node.id!r}"))
    else:
        holds.ask_doubt(decision, execution, error, substep=substep)


def _unknown(what: str) -> ErrorInfo:
    return ErrorInfo(
        "outcome_unknown", "OutcomeUnknownError", f"{what} started, and its outcome is not known"
    )


def next_doubt(decision: Decision, execution: Exec, node: Node) -> bool:
    """Several sub-steps may have been running at once: their unknown outcomes are settled one after the
    other."""
    for substep in execution.step_intents:
        _step_in_doubt(decision, execution, node, substep, None)
        return True
    return False
