"""Waits: questions to people, doubts about effects, timers; and what ends them."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

from holdfast.engine import failing, settling
from holdfast.engine.dataflow import Flow, Problem
from holdfast.engine.decision import Decision, node_of, side_of
from holdfast.engine.messages import Answered, CodeChanged, Finished, Proven, Recovered, TimerFired
from holdfast.model.apply import apply_record
from holdfast.model.bodies import AskedBody, AttemptBody, ErrorInfo, SubstepBody
from holdfast.model.expr import MISSING as EXPR_MISSING
from holdfast.model.expr import Resolve, compile_expr
from holdfast.model.graph import HoldSpec, Node
from holdfast.model.position import Exec, OpenHold, Position, join_token, resolver
from holdfast.model.template import TemplateRenderError, as_text, compile_template, json_bytes
from holdfast.types.clock import to_micros
from holdfast.types.hold import HoldClosed, NewHold, Option
from holdfast.types.ids import HoldId, derived_id
from holdfast.types.record import Kind, NewTimer, Op, Side
from holdfast.types.status import HoldStatus
from holdfast.types.value import FrozenDict

DOUBT_OPTIONS = (
    Option("happened", "It happened", "primary"),
    Option("not_happened", "It did not happen: run it again", "secondary"),
    Option("fail", "Give up: fail the node", "danger"),
)
CODE_OPTIONS = (
    Option("accept", "Go on with the changed code", "primary"),
    Option("refuse", "Stop: the run fails and can be resumed with the old code", "danger"),
)
# Doubts and repeated questions take places of their own beside the questions of a node.
DOUBT = 1_000_000
AGAIN = 2_000_000


def ask(
    decision: Decision,
    execution: Exec | None,
    node: str,
    spec: HoldSpec,
    *,
    why: str,
    ordinal: int,
    prompt: str,
    context: dict[str, Any],
    code: str = "",
) -> None:
    """Open a hold by an `asked` record of its own; asking again finds the same id (D-28)."""
    pos = decision.pos
    scope, visit = (execution.scope, execution.visit) if execution else ("", 0)
    hold = HoldId(derived_id(pos.run, scope, node, visit, why, ordinal))
    expires = None if spec.timeout is None else decision.now + spec.timeout
    token = f"hold:{hold}" if expires is not None else ""
    shown = json_bytes((prompt, spec.options, context, spec.schema))
    row = NewHold(
        id=hold,
        seq=pos.head + 1,
        node=node,
        scope=scope,
        visit=visit,
        ordinal=ordinal,
        type=spec.type,
        prompt=prompt,
        options=spec.options,
        assignee=spec.assignee,
        priority=spec.priority,
        context=json_bytes(context),
        schema=None if spec.schema is None else json_bytes(spec.schema),
        created_at=decision.now,
        expires_at=expires,
        expiry_action=spec.on_timeout,
        request_hash="sha256:" + sha256(shown).hexdigest(),
    )
    options = [[o.id, o.label, o.variant] for o in spec.options] if spec.options else None
    body = AskedBody(
        hold,
        ordinal,
        spec.type,
        prompt,
        options,
        spec.assignee,
        spec.priority,
        FrozenDict(context),
        spec.schema,
        expires,
        why,
        token,
        _on_timeout(spec),
        code,
    )
    side = Side(holds=[row], timers=[NewTimer(token, expires)] if expires is not None else [])
    record = decision.draft(
        Kind.asked, body, node=node, execution=execution, effect="human", listed=True, side=side
    )
    apply_record(decision.graph, pos, record, body)


def _on_timeout(spec: HoldSpec) -> str | None:
    """What the expiry will do, complete in itself: it must not depend on the question's code later."""
    if spec.on_timeout in ("default", "default_option") and spec.options:
        return f"default:{spec.options[0].id}"
    return spec.on_timeout


def ask_node(decision: Decision, execution: Exec, node: Node) -> None:
    """A hold node asks as soon as it starts: the question is stored before anybody waits (R-23)."""
    spec = node.hold or HoldSpec()
    resolve = resolver(decision.pos.scopes[execution.scope].tree, execution.frame)
    prompt = _text(_rendered(spec.prompt, resolve))
    context = {name: _rendered(text, resolve) for name, text in spec.context.items()}
    if spec.assignee is not None and "{{" in spec.assignee:
        rendered = _text(_rendered(spec.assignee, resolve))
        spec = msgspec.structs.replace(spec, assignee=rendered)
    ask(
        decision,
        execution,
        node.id,
        spec,
        why="node:",
        ordinal=execution.attempt - 1,
        prompt=prompt,
        context=context,
    )


def _rendered(text: str, resolve: Resolve) -> object:
    """A question is asked even where a value in it cannot be shown: the person is told so."""
    try:
        return compile_template(text).render(resolve).value
    except TemplateRenderError as error:
        return f"{text} ({error})"


def _text(value: object) -> str:
    try:
        return value if isinstance(value, str) else as_text(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return f"(it cannot be shown as text: {error})"


def ask_inside(
    decision: Decision,
    execution: Exec,
    key: str,
    ordinal: int,
    spec: HoldSpec,
    context: dict[str, Any],
    code: str,
) -> None:
    """A question in the middle of a node (`ctx.ask`). One whose hold was closed unanswered is asked anew."""
    node = node_of(decision.graph, decision.pos, execution)
    if key in execution.subs:
        ordinal = AGAIN + decision.pos.head
    ask(
        decision,
        execution,
        node.id,
        spec,
        why=f"ask:{key}",
        ordinal=ordinal,
        prompt=spec.prompt,
        context=context,
        code=code,
    )


def ask_doubt(decision: Decision, execution: Exec, error: ErrorInfo | None, *, substep: str = "") -> None:
    """Did it happen? Only a person can know; the intent's facts are shown with the question."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    step = execution.step_names.get(substep, substep)
    what = f"step {step!r} of node {node.id!r}" if substep else f"node {node.id!r}"
    said = f" It reported: {error.type}: {error.message}" if error is not None else ""
    prompt = f"Did {what} take effect? It started, and how it ended is not known.{said}"
    context = {
        "node": node.id,
        "step": step or None,
        "effect": str(node.effect),
        "visit": execution.visit,
        "attempt": execution.attempt,
        "intent": execution.step_intents.get(substep, -1) if substep else execution.intent,
        "error": None if error is None else {"type": error.type, "message": error.message},
    }
    spec = HoldSpec(type="in_doubt", prompt=prompt, options=DOUBT_OPTIONS, priority="high")
    why = f"doubt_step:{substep}" if substep else "doubt:"
    ask(decision, execution, node.id, spec, why=why, ordinal=DOUBT + pos.head, prompt=prompt, context=context)


def close_holds(pos: Position, execution: Exec, side: Side, reason: str) -> None:
    for hold, waiting in pos.holds.items():
        if waiting.node == execution.node and waiting.scope == execution.scope:
            side.close_holds.append(HoldClosed(HoldId(hold), HoldStatus.cancelled, reason))
            if waiting.token:
                side.close_timers.append(waiting.token)


def answered(decision: Decision, message: Answered) -> None:
    """An answer counts for exactly the hold that it names (R-27); one for a closed hold is only consumed."""
    pos = decision.pos
    waiting = pos.holds.get(message.hold)
    if waiting is not None and waiting.why == "code":
        _code_answered(decision, waiting, message)
        return
    execution = pos.execs.get((waiting.scope, waiting.node)) if waiting else None
    if waiting is None or execution is None:
        consume(decision, message.inbox)
        return
    if waiting.why == "node":
        _decided(decision, execution, message.resolution, message.inbox)
    elif waiting.why == "ask":
        _told(decision, execution, waiting, message.hold, message.resolution, message.inbox)
    else:
        _doubt_resolved(decision, execution, waiting, message)


def consume(decision: Decision, inbox: int) -> None:
    """Something that changes nothing any more; noted, so that it is not read again."""
    if inbox:
        body = AttemptBody("ignored")
        record = decision.draft(Kind.attempt, body, side=Side(inbox_done=[inbox]))
        apply_record(decision.graph, decision.pos, record, body)


def _decided(
    decision: Decision, execution: Exec, resolution: Any, inbox: int, *, reroute: str | None = None
) -> None:
    node = node_of(decision.graph, decision.pos, execution)
    bind = node.hold.bind if node.hold else "decision"
    ops: list[Op] = [
        ("scratch", bind, "set", resolution.get("decision")),
        ("scratch", f"{bind}_result", "set", resolution),
    ]
    finished = Finished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        ops=ops,
        duration=0,
        inbox=inbox,
        reroute=reroute,
    )
    settling.settle(decision, execution, finished)


def _told(
    decision: Decision,
    execution: Exec,
    waiting: OpenHold,
    hold: str,
    resolution: Any,
    inbox: int,
    error: ErrorInfo | None = None,
) -> None:
    """The answer to a question inside a node is recorded like any sub-step; the node goes on from it."""
    node = node_of(decision.graph, decision.pos, execution)
    known = execution.subs.get(waiting.key)
    name = known.name if known else execution.step_names.get(waiting.key, "")
    body = SubstepBody(waiting.key, name, resolution, error, hold)
    side = Side(close_timers=[waiting.token] if waiting.token else [])
    if inbox:
        side.inbox_done.append(inbox)
    record = decision.draft(
        Kind.substep, body, node=node.id, execution=execution, effect="human", listed=True, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)
    if waiting.why == "doubt_step" and failing.next_doubt(decision, execution, node):
        return
    decision.starts.append(execution)


def _doubt_resolved(decision: Decision, execution: Exec, waiting: OpenHold, message: Answered) -> None:
    said = message.resolution.get("decision")
    data: dict[str, Any] = message.resolution.get("response_data") or {}
    if said == "happened" and waiting.why == "doubt_step":
        _told(decision, execution, waiting, message.hold, data.get("value"), message.inbox)
    elif said == "happened":
        update: dict[str, Any] = data.get("update") or {}
        ops: list[Op] = [("scratch", key, "set", value) for key, value in update.items()]
        finished = Finished(
            scope=execution.scope,
            node=execution.node,
            visit=execution.visit,
            ops=ops,
            output=data.get("value"),
            inbox=message.inbox,
            notes=FrozenDict({"in_doubt": "happened"}),
        )
        settling.settle(decision, execution, finished)
    elif said == "not_happened" and waiting.why == "doubt_step":
        _step_not_happened(decision, execution, waiting.key, message.inbox)
    elif said == "not_happened":
        failing.restart(decision, execution, "in_doubt", inbox=message.inbox)
    else:
        failing.give_up(
            decision,
            execution,
            ErrorInfo(
                "outcome_unknown", "OutcomeUnknownError", "a person decided that the outcome stays unknown"
            ),
            inbox=message.inbox,
        )


def _step_not_happened(decision: Decision, execution: Exec, key: str, inbox: int) -> None:
    node = node_of(decision.graph, decision.pos, execution)
    body = AttemptBody("not_happened", token=key)
    side = Side(inbox_done=[inbox] if inbox else [])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)
    if not failing.next_doubt(decision, execution, node):
        failing.restart(decision, execution, "in_doubt")


def proven(decision: Decision, execution: Exec, told: Proven, inbox: int) -> None:
    """Late evidence about a sub-step: its result is recorded, and a doubt about it is over (D-17)."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    doubts = [h for h, w in pos.holds.items() if _doubts(w, execution, told.ordinal)]
    side = Side(
        inbox_done=[inbox] if inbox else [],
        close_holds=[
            HoldClosed(HoldId(h), HoldStatus.cancelled, "the worker told what happened") for h in doubts
        ],
    )
    body = SubstepBody(told.ordinal, told.name, told.value, hold=doubts[0] if doubts else "")
    record = decision.draft(
        Kind.substep, body, node=node.id, execution=execution, effect=node.effect, listed=True, side=side
    )
    apply_record(decision.graph, pos, record, body)
    if doubts and not failing.next_doubt(decision, execution, node):
        decision.starts.append(execution)


def _doubts(waiting: OpenHold, execution: Exec, key: str) -> bool:
    here = (waiting.scope, waiting.node) == (execution.scope, execution.node)
    return here and waiting.why == "doubt_step" and waiting.key == key


def code_changed(decision: Decision, message: CodeChanged) -> None:
    """Changed code may go on with a run if the flow says so: by itself, or after a person agreed (D-34)."""
    if decision.graph.spec.code_change != "ask":
        _accept_code(decision, message.new, 0)
        return
    prompt = (
        f"The code of flow {decision.graph.name!r} has changed since this run was last advanced. "
        "Go on with the new code?"
    )
    spec = HoldSpec(type="code_changed", prompt=prompt, options=CODE_OPTIONS, priority="high")
    ask(
        decision,
        None,
        "",
        spec,
        why=f"code:{message.new}",
        ordinal=AGAIN + decision.pos.head,
        prompt=prompt,
        context={"old": message.old, "new": message.new},
    )


def _accept_code(decision: Decision, code: str, inbox: int) -> None:
    body = AttemptBody("code_changed", token=code)
    record = decision.draft(Kind.attempt, body, side=Side(inbox_done=[inbox]) if inbox else None)
    apply_record(decision.graph, decision.pos, record, body)


def _code_answered(decision: Decision, waiting: OpenHold, message: Answered) -> None:
    if message.resolution.get("decision") == "accept":
        _accept_code(decision, waiting.key, message.inbox)
        failing.recovered(decision, Recovered())
        return
    consume(decision, message.inbox)
    failing.fail_run(
        decision, Problem("version_mismatch", "a person refused to go on with the changed code", "")
    )


def sleep(decision: Decision, execution: Exec, node: Node) -> None:
    """A timer node: its wake time is fixed once and kept over early and repeated resumes."""
    wake = _wake_at(decision, execution, node)
    token = f"sleep:{execution.scope}{node.id}.{execution.visit}"
    body = AttemptBody("sleep", None, wake, token)
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


def _wake_at(decision: Decision, execution: Exec, node: Node) -> int:
    spec = node.timer
    assert spec is not None
    if spec.duration is not None:
        return decision.now + spec.duration
    resolve = resolver(decision.pos.scopes[execution.scope].tree, execution.frame)
    value = compile_expr(spec.until or "null").evaluate(resolve)
    if value is EXPR_MISSING or value is None:
        return decision.now
    if isinstance(value, (int, float)):
        return decision.now + int(value * 1_000_000)
    return to_micros(value)  # type: ignore[arg-type]


def arm_join(decision: Decision, waiting: Exec) -> None:
    """A join with a time limit: the clock starts when the first branch arrives."""
    pos = decision.pos
    node = node_of(decision.graph, pos, waiting)
    if (waiting.scope, waiting.node) in pos.execs or node.join.timeout is None:
        return
    token = join_token(waiting.scope, node.id, waiting.visit)
    wake = decision.now + node.join.timeout
    body = AttemptBody("join_timer", None, wake, token)
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(Kind.attempt, body, node=node.id, execution=waiting, side=side)
    apply_record(decision.graph, pos, record, body)


def timer_fired(decision: Decision, message: TimerFired) -> None:
    """A token that is no longer open changes nothing (D-30)."""
    pos = decision.pos
    key = pos.timers.get(message.token)
    execution = pos.execs.get(key) if key is not None else None
    kind = message.token.partition(":")[0]
    if kind == "join" and key is not None and execution is None:
        _join_timed_out(decision, key, message)
    elif execution is None:
        pos.timers.pop(message.token, None)
        consume(decision, message.inbox)
    elif kind == "hold":
        _expired(decision, execution, message)
    elif execution.phase != "delay" or execution.token != message.token:
        consume(decision, message.inbox)
    elif kind == "sleep":
        _woke(decision, execution, message)
    else:
        failing.restart(decision, execution, "woke", inbox=message.inbox)


def _woke(decision: Decision, execution: Exec, message: TimerFired) -> None:
    finished = Finished(
        scope=execution.scope, node=execution.node, visit=execution.visit, inbox=message.inbox
    )
    settling.settle(decision, execution, finished)


def _join_timed_out(decision: Decision, key: tuple[str, int], message: TimerFired) -> None:
    pos = decision.pos
    scope = pos.scopes[key[0]]
    graph = pos.scope_graph(decision.graph, scope)
    body = AttemptBody("join_timeout")
    record = decision.draft(
        Kind.attempt,
        body,
        node=graph.nodes[key[1]].id,
        side=Side(inbox_done=[message.inbox] if message.inbox else []),
    )
    record.scope = scope.path
    pos.head, pos.at = record.seq, record.at
    flow = Flow(decision, scope, body.moves)
    try:
        flow.start(key[1])
        flow.run()
    except Problem as problem:
        failing.fail_run(decision, problem)
    for fresh in flow.opened:
        settling.open_exec(decision, fresh)


def _expired(decision: Decision, execution: Exec, message: TimerFired) -> None:
    """Nobody answered in time. Without a declared action this is a failure: never an approval."""
    pos = decision.pos
    hold = message.token.partition(":")[2]
    waiting = pos.holds.get(hold)
    if waiting is None:
        consume(decision, message.inbox)
        return
    action = waiting.on_timeout or "fail"
    node = node_of(decision.graph, pos, execution)
    if action.startswith("default:"):
        _by_default(decision, execution, waiting, hold, action.partition(":")[2], message.inbox)
    elif action == "cancel":
        failing.cancel_run(decision, f"hold {hold} expired", message.inbox)
    elif action.startswith("branch:"):
        expired = FrozenDict({"decision": None, "response_data": None, "expired": True})
        _decided(decision, execution, expired, message.inbox, reroute=action.partition(":")[2])
        _mark_expired(decision, hold)
    else:
        error = ErrorInfo(
            "hold_expired", "HoldExpiredError", f"nobody answered {waiting.key or node.id!r} in time"
        )
        if waiting.why == "ask":
            _told(decision, execution, waiting, hold, None, message.inbox, error)
        else:
            failing.give_up(decision, execution, error, inbox=message.inbox)
        _mark_expired(decision, hold)


def _by_default(
    decision: Decision, execution: Exec, waiting: OpenHold, hold: str, option: str, inbox: int
) -> None:
    chosen = FrozenDict(
        {"decision": option, "response_data": None, "auto_expired": True, "resolved_by": "system:expiry"}
    )
    if waiting.why == "ask":
        _told(decision, execution, waiting, hold, chosen, inbox)
    else:
        _decided(decision, execution, chosen, inbox)
    _mark_expired(decision, hold)


def _mark_expired(decision: Decision, hold: str) -> None:
    """The row says how it ended: expired, not cancelled."""
    for record, _ in decision.records:
        if record.side is not None:
            record.side.close_holds = [c for c in record.side.close_holds if c.id != hold]
    closed = HoldClosed(HoldId(hold), HoldStatus.expired, "nobody answered in time")
    side_of(decision.records[0][0]).close_holds.append(closed)
