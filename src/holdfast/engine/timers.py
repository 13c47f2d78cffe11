"""Timers: nodes that sleep, joins with a time limit; and what happens when one fires."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from holdfast.engine import end, failures, fan_out, parallel_join, retry, settle
from holdfast.engine.dataflow_mode import EdgePropagation
from holdfast.engine.decision import CannotContinueError, Decision, consume, node_of
from holdfast.engine.messages import HandlerFinished, TimerFired
from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.apply import apply_record
from holdfast.model.expressions import MISSING as EXPR_MISSING
from holdfast.model.expressions import compile_expr
from holdfast.model.graph import Node
from holdfast.model.moves import join_token
from holdfast.model.paths import resolver
from holdfast.model.position import NAP, STEP_WOKE, Exec
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, SubstepBody
from holdfast.types.clock import END_OF_TIME, MICROS, START_OF_TIME, to_micros
from holdfast.types.record import Body, Kind, NewTimer, Side
from holdfast.types.text import clean_text


def sleep(decision: Decision, execution: Exec, node: Node) -> None:
    """A timer node: its wake time is set once and kept over early and repeated resumes."""
    wake = _wake_at(decision, execution, node)
    if isinstance(wake, ErrorInfo):
        failures.give_up(decision, execution, wake)
        return
    token = f"sleep:{execution.scope}{node.id}.{execution.visit}"
    body = AttemptBody("sleep", None, wake, token)
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


def _wake_at(decision: Decision, execution: Exec, node: Node) -> int | ErrorInfo:
    spec = node.timer
    assert spec is not None
    if spec.duration is not None:
        return decision.now + spec.duration
    tree, records = decision.pos.scopes[execution.scope].tree, decision.pos.strict_names
    resolve = resolver(tree, execution.frame, records=records)
    until = compile_expr(spec.until or "null")
    try:
        value = until.evaluate(resolve)
    except (MissingNameError, NotComparableError) as wrong:
        if decision.is_strict():
            return fan_out.unreadable(node, f"its time {spec.until!r}", wrong)
        value = until.lenient(resolve)
    if (value is EXPR_MISSING or value is None) and not decision.is_strict():
        return decision.now
    try:
        return _instant_of(value, decision.now)
    except ValueError as wrong:
        return ErrorInfo("node_failed", "ValueError", f"node {node.id!r}: its time {spec.until!r} {wrong}")


def _instant_of(value: object, now: int) -> int:
    """Of an instant, or of seconds from now. Raises ValueError that says what it is instead."""
    moment: object = _parsed(value) if isinstance(value, str) else value
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        found = to_micros(moment)
    elif isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        # What is far out of range, infinite or no number does not become an integer.
        found = now + int(value * MICROS) if -END_OF_TIME <= value <= END_OF_TIME else END_OF_TIME + MICROS
    else:
        shown = "null" if value is None else clean_text(repr(value), 80)
        raise ValueError(
            f"is {shown}: no number of seconds, and no instant with a time zone, such as 2026-01-31T09:00:00Z"
        )
    if not START_OF_TIME <= found < END_OF_TIME + MICROS:
        raise ValueError(f"is {clean_text(str(value), 80)}: it is outside of the years 1 to 9999")
    return found


def _parsed(text: str) -> datetime | None:
    """Data of documents has no datetimes: an instant is text there."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def sleep_inside(decision: Decision, execution: Exec, node: Node, key: str, wake: int) -> None:
    """`ctx.sleep` inside a handler: the wake time is set once, however often the node is entered (D-5)."""
    # With the attempt: the timer of an earlier one is closed by its own name.
    token = f"nap:{execution.scope}{node.id}.{execution.visit}.{execution.attempt}:{key}"
    body = AttemptBody("nap", None, wake, token, nodes=[key])
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


def _wait_inside_ended(decision: Decision, execution: Exec, message: TimerFired) -> None:
    """A `ctx.sleep`, or the back-off of a sub-step."""
    node = node_of(decision.graph, decision.pos, execution)
    key = next((k for k, sub in execution.subs.items() if not sub.done and sub.hold == message.token), None)
    if key is None:
        decision.pos.timers.pop(message.token, None)
        consume(decision, message.inbox)
        return
    sub = execution.subs[key]
    slept = sub.name == NAP
    body: Body = SubstepBody(key, NAP)
    if not slept:
        body = AttemptBody(STEP_WOKE, nodes=[key, sub.name, str(sub.failures)])
    # Without an inbox row the driver's own clock ended the wait: then the stored timer must not fire as well.
    side = Side(inbox_done=[message.inbox]) if message.inbox else Side(close_timers=[message.token])
    record = decision.draft(
        Kind.substep if slept else Kind.attempt,
        body,
        node=node.id,
        execution=execution,
        effect=node.effect,
        outcome="success" if slept else "",
        side=side,
    )
    apply_record(decision.graph, decision.pos, record, body)
    if execution.phase == "work":
        decision.starts.append(execution)


def limit(decision: Decision, execution: Exec, node: Node, length: int) -> None:
    """Start the time limit of a node's branches."""
    wake = decision.now + length
    token = f"limit:{execution.scope}{node.id}.{execution.visit}.{execution.attempt}"
    body = AttemptBody("limit", None, wake, token)
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


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


def on_timer_fired(decision: Decision, message: TimerFired) -> None:
    """A token that is no longer open changes nothing (D-30)."""
    pos = decision.pos
    key = pos.timers.get(message.token)
    execution = pos.execs.get(key) if key is not None else None
    kind = message.token.partition(":")[0]
    # A join that has not started has no execution; one that has started is past its time limit.
    if kind == "join" and key is not None and execution is None:
        _join_timed_out(decision, key, message)
    elif execution is None:
        pos.timers.pop(message.token, None)
        consume(decision, message.inbox)
    elif kind in ("nap", retry.AGAIN):
        _wait_inside_ended(decision, execution, message)
    elif kind == "limit" and execution.phase == "children" and execution.token == message.token:
        parallel_join.timed_out(decision, execution, message)
    elif execution.phase != "delay" or execution.token != message.token:
        consume(decision, message.inbox)
    elif kind == "sleep":
        _woke(decision, execution, message)
    else:
        retry.restart(decision, execution, "woke", inbox=message.inbox)


def _woke(decision: Decision, execution: Exec, message: TimerFired) -> None:
    finished = HandlerFinished(
        scope=execution.scope, node=execution.node, visit=execution.visit, inbox=message.inbox
    )
    settle.settle(decision, execution, finished)


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
    flow = EdgePropagation(decision, scope, body.moves)
    try:
        flow.start(key[1])
        flow.run()
    except CannotContinueError as problem:
        end.fail_run(decision, problem)
    for fresh in flow.opened:
        settle.open_exec(decision, fresh)
