"""A hold that ended without a decision: it expired, or somebody withdrew it. Never an approval."""

from __future__ import annotations

from holdfast.engine import answers, end, failures
from holdfast.engine.decision import Decision, consume, node_of, taken_in
from holdfast.engine.messages import Lapsed
from holdfast.errors import HoldCancelledError, HoldExpiredError
from holdfast.model.hold_rules import BRANCH
from holdfast.model.position import Exec, OpenHold
from holdfast.model.record_bodies import ErrorInfo
from holdfast.types.value import FrozenDict


def lapsed(decision: Decision, message: Lapsed) -> None:
    """Of a hold that nobody waits for any more it is only noted."""
    with taken_in(decision, message.hold):
        waiting = decision.pos.holds.get(message.hold)
        if waiting is None:
            consume(decision, message.inbox)
        elif message.withdrawn and not message.raises:
            end.cancel_run(decision, message.reason, message.inbox)
        elif waiting.why == "code":
            answers.refuse_code(decision, "nobody agreed to the changed code in time", message.inbox)
        else:
            execution = decision.pos.execs.get((waiting.scope, waiting.node))
            if execution is None:
                consume(decision, message.inbox)
            else:
                _lapsed(decision, execution, waiting, message)


def _lapsed(decision: Decision, execution: Exec, waiting: OpenHold, message: Lapsed) -> None:
    branch = (waiting.on_timeout or "").startswith(BRANCH)
    if branch and waiting.why == "node" and not message.withdrawn:
        expired = FrozenDict({"decision": None, "response_data": None, "expired": True})
        target = (waiting.on_timeout or "").removeprefix(BRANCH)
        answers.decide(decision, execution, expired, message.inbox, reroute=target)
        return
    error = _error(decision, execution, waiting, message)
    if waiting.why == "ask":
        answers.tell(decision, execution, waiting, message.hold, None, message.inbox, error)
    else:
        failures.give_up(decision, execution, error, inbox=message.inbox)


def _error(decision: Decision, execution: Exec, waiting: OpenHold, message: Lapsed) -> ErrorInfo:
    asked = waiting.key or repr(node_of(decision.graph, decision.pos, execution).id)
    if message.withdrawn:
        return ErrorInfo(
            HoldCancelledError.code, HoldCancelledError.__name__, f"{asked} was withdrawn: {message.reason}"
        )
    return ErrorInfo(HoldExpiredError.code, HoldExpiredError.__name__, f"nobody answered {asked} in time")
