"""Applies an answer: to a hold node, a question inside a node, or changed code (see `in_doubt` for effects).

Also holds that ended without a decision, expired or cancelled: these never count as an approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.engine import breakpoints, end, failures, holds, in_doubt, recover, settle
from holdfast.engine.decision import CannotContinueError, Decision, consume, consume_hold, node_of
from holdfast.engine.messages import (
    CodeChanged,
    HandlerFinished,
    HoldAnswered,
    HoldUnanswered,
    RunRecovered,
)
from holdfast.errors import HeartbeatMissedError, HoldCancelledError, HoldExpiredError
from holdfast.model.apply import apply_record
from holdfast.model.approver_edits import changes, merged
from holdfast.model.graph import HoldSpec
from holdfast.model.hold_declaration import BRANCH, decision_of, mapping_of
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, OpenHold
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, usage_of_judge
from holdfast.types.decision_words import approves
from holdfast.types.hold import NO_HEARTBEAT, Option
from holdfast.types.record import Kind, Op, Side
from holdfast.types.value import FrozenDict, freeze

CODE_OPTIONS = (
    Option("accept", "Continue with the changed code", "primary"),
    Option("refuse", "Fail the run; it can be resumed with the old code", "danger"),
)


def on_hold_answered(decision: Decision, message: HoldAnswered) -> None:
    """An answer counts for exactly the hold that it names (R-27); one for a closed hold is only consumed."""
    before = len(decision.records)
    _apply_answer(decision, message)
    consume_hold(decision, message.hold, before)


def _apply_answer(decision: Decision, message: HoldAnswered) -> None:
    pos = decision.pos
    waiting = pos.holds.get(message.hold)
    if waiting is not None and waiting.why == "code":
        _code_answered(decision, waiting, message)
        return
    execution = pos.execs.get((waiting.scope, waiting.node)) if waiting else None
    if waiting is None or execution is None:
        consume(decision, message.inbox)
        return
    _as_agreed(waiting, message)
    if waiting.why == "break":
        breakpoints.apply_breakpoint_answer(decision, execution, message)
    elif waiting.why == "node":
        decide(decision, execution, message.resolution, message.inbox)
    elif waiting.why == "ask":
        _continue_with(decision, execution, waiting, message.hold, message.resolution, message.inbox)
    else:
        in_doubt.on_answered(decision, execution, waiting, message)


def _as_agreed(waiting: OpenHold, message: HoldAnswered) -> None:
    """In older journals the journal, not the row, has the default answer."""
    agreed = (waiting.on_timeout or "").partition("default:")[2]
    if agreed and message.resolution.get("auto_expired"):
        message.resolution = FrozenDict({**message.resolution, "effective_decision": agreed})


def decide(
    decision: Decision, execution: Exec, resolution: Any, inbox: int, *, reroute: str | None = None
) -> None:
    node = node_of(decision.graph, decision.pos, execution)
    bind = node.hold.bind if node.hold else "decision"
    ops: list[Op] = [
        ("scratch", bind, "set", decision_of(resolution)),
        ("scratch", f"{bind}_result", "set", resolution),
    ]
    data = mapping_of(resolution.get("response_data"))
    if node.hold and node.hold.into and data:
        ops.append(("scratch", node.hold.into, "set", data))
    ops += _modified(decision, execution, node.hold, resolution, data)
    if reroute is not None:
        fitting = _without_decision(decision, execution, bind, ops)
    else:
        fitting = decision.fits.ops(decision, execution, ops) if decision.fits else ops
    if isinstance(fitting, ErrorInfo):
        failures.give_up(decision, execution, fitting, inbox=inbox)
        return
    finished = HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        ops=fitting,
        duration=0,
        inbox=inbox,
        reroute=reroute,
        usage=usage_of_judge(resolution),
    )
    settle.settle(decision, execution, finished)


def _modified(
    decision: Decision, execution: Exec, hold: HoldSpec | None, resolution: Any, data: Mapping[str, Any]
) -> list[Op]:
    """The approver's changes; a rejection has none."""
    if hold is None or not hold.modifies or not approves(str(decision_of(resolution)), hold.options):
        return []
    read = resolver(decision.pos.scopes[execution.scope].tree, execution.frame)
    return [
        ("scratch", field, "set", merged(kind, read((field,)), value))
        for kind, field, value in changes(hold.modifies, data)
    ]


def _without_decision(decision: Decision, execution: Exec, bind: str, ops: list[Op]) -> list[Op]:
    """Without a decision the field has its declared default, or None if there is none, which validation lets
    through only where the type allows it; a field that collects decisions stays as it is. A run from before
    that rule got None (ADR 58)."""
    spec = decision.pos.scope_graph(decision.graph, decision.pos.scopes[execution.scope]).spec
    kept = [op for op in ops if op[1] not in spec.reducers]
    if not decision.pos.strict_names or spec.fields is None or bind not in spec.defaults:
        return kept
    default = freeze(spec.defaults[bind])
    return [(where, key, op, default if key == bind else value) for where, key, op, value in kept]


def _continue_with(
    decision: Decision,
    execution: Exec,
    waiting: OpenHold,
    hold: str,
    resolution: Any,
    inbox: int,
    error: ErrorInfo | None = None,
) -> None:
    """The node that asked continues from the recorded answer; while the outcome of one of its effects is not
    known, it starts nothing."""
    holds.record_answer(decision, execution, waiting, hold, resolution, inbox, error)
    if execution.phase == "work":
        decision.starts.append(execution)


def on_code_changed(decision: Decision, message: CodeChanged) -> None:
    """Changed code may continue a run if the flow allows it: without asking, or after a person agreed
    (D-34)."""
    if decision.graph.spec.code_change != "ask":
        _accept_code(decision, message.new, 0, message.nodes)
        return
    of = f" (of {', '.join(message.nodes)})" if message.nodes else ""
    prompt = (
        f"The code of flow {decision.graph.name!r}{of} has changed since this run was last advanced. "
        "Continue with the new code?"
    )
    spec = HoldSpec(type="code_changed", prompt=prompt, options=CODE_OPTIONS, priority="high")
    holds.ask(
        decision,
        None,
        "",
        spec,
        why=f"code:{message.new}",
        ordinal=holds.AGAIN + decision.pos.head,
        prompt=prompt,
        context={"old": message.old, "new": message.new, "nodes": message.nodes},
    )


def _accept_code(decision: Decision, code: str, inbox: int, nodes: list[str]) -> None:
    body = AttemptBody("code_changed", token=code, nodes=nodes)
    record = decision.draft(Kind.attempt, body, side=Side(inbox_done=[inbox]) if inbox else None)
    apply_record(decision.graph, decision.pos, record, body)


def _code_answered(decision: Decision, waiting: OpenHold, message: HoldAnswered) -> None:
    if message.resolution.get("decision") == "accept":
        _accept_code(decision, waiting.key, message.inbox, [])
        recover.on_run_recovered(decision, RunRecovered())
        return
    refuse_code(decision, "a person refused to continue with the changed code", message.inbox)


def refuse_code(decision: Decision, why: str, inbox: int) -> None:
    consume(decision, inbox)
    end.fail_run(decision, CannotContinueError("version_mismatch", why, ""))


def on_hold_unanswered(decision: Decision, message: HoldUnanswered) -> None:
    """If nothing waits for the hold any more, the message is only consumed."""
    before = len(decision.records)
    waiting = decision.pos.holds.get(message.hold)
    execution = decision.pos.execs.get((waiting.scope, waiting.node)) if waiting else None
    if waiting is None:
        consume(decision, message.inbox)
    elif message.withdrawn and not message.raises:
        end.cancel_run(decision, message.reason, message.inbox)
    elif waiting.why == "code":
        refuse_code(decision, "the changed code was not accepted in time", message.inbox)
    elif execution is None:
        consume(decision, message.inbox)
    else:
        _apply_unanswered(decision, execution, waiting, message)
    consume_hold(decision, message.hold, before)


def _apply_unanswered(
    decision: Decision, execution: Exec, waiting: OpenHold, message: HoldUnanswered
) -> None:
    branch = (waiting.on_timeout or "").startswith(BRANCH)
    if branch and waiting.why == "node" and not message.withdrawn:
        expired = FrozenDict({"decision": None, "response_data": None, "expired": True})
        target = (waiting.on_timeout or "").removeprefix(BRANCH)
        decide(decision, execution, expired, message.inbox, reroute=target)
        return
    error = _error(decision, execution, waiting, message)
    if waiting.why == "ask":
        _continue_with(decision, execution, waiting, message.hold, None, message.inbox, error)
    else:
        failures.give_up(decision, execution, error, inbox=message.inbox)


def _error(decision: Decision, execution: Exec, waiting: OpenHold, message: HoldUnanswered) -> ErrorInfo:
    # These texts are in stored records: a replay reads the reason from them and compares them
    # (`history.replay_messages`).
    asked = waiting.key or repr(node_of(decision.graph, decision.pos, execution).id)
    if message.withdrawn:
        return ErrorInfo(
            HoldCancelledError.code, HoldCancelledError.__name__, f"{asked} was withdrawn: {message.reason}"
        )
    if message.reason == NO_HEARTBEAT:
        return ErrorInfo(
            HeartbeatMissedError.code, HeartbeatMissedError.__name__, f"{asked}: {message.reason}"
        )
    return ErrorInfo(HoldExpiredError.code, HoldExpiredError.__name__, f"nobody answered {asked} in time")
