"""Retries: whether a node runs again, and when. The wake time is computed once and stored (D-5)."""

from __future__ import annotations

from hashlib import sha256

from holdfast.engine import holds, settle
from holdfast.engine.decision import Decision, node_of
from holdfast.model.apply import apply_record
from holdfast.model.child_scopes import PARENTS
from holdfast.model.graph import Node, RetryPolicy
from holdfast.model.position import STEP_RETRY, Exec, naps_of
from holdfast.model.record_bodies import AttemptBody, ErrorInfo, Usage
from holdfast.types.backoff import Backoff
from holdfast.types.record import Kind, NewTimer, Side

AGAIN = "again"
"""Prefix of the timer of a sub-step that waits for its next attempt."""


def retry_delay(policy: RetryPolicy, failures: int, *identity: str | int) -> int:
    """Microseconds before the next attempt, after this many failures (from 1).

    Jitter is a hash of the retrying node, so that replaying a run gives the same times.
    """
    backoff = Backoff(
        policy.delay,
        policy.cap,
        factor=policy.factor or 2.0,
        jitter=policy.jitter,
        spread=policy.spread or 0.0,
        kind=policy.backoff,
    )
    wait = int(backoff.full_pause(failures))
    return int(backoff.with_jitter(wait, _share(*identity, failures)))


def _share(*identity: str | int) -> float:
    """From 0 to 1, always the same for the same identity."""
    raw = sha256("/".join(map(str, identity)).encode()).digest()
    return int.from_bytes(raw[:8], "big") / 2**64


def schedule_retry(decision: Decision, execution: Exec, node: Node, error: ErrorInfo, inbox: int) -> None:
    failures = execution.failures + 1
    pause = retry_delay(node.retry, failures, decision.pos.run, execution.scope, node.id, execution.visit)
    wake = decision.now + pause
    # The number of failures is part of the name: a timer of an earlier retry that fires late matches nothing.
    token = f"retry:{execution.scope}{node.id}.{execution.visit}.{failures}"
    body = AttemptBody("retry", error, wake, token)
    side = Side(timers=[NewTimer(token, wake)], inbox_done=[inbox] if inbox else [])
    holds.close_holds(decision.pos, execution, side, "superseded")
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, outcome="retry", side=side
    )
    record.attempt = execution.attempt + 1
    apply_record(decision.graph, decision.pos, record, body)


def back_off(
    decision: Decision,
    execution: Exec,
    node: Node,
    substep: tuple[str, str],
    policy: RetryPolicy,
    failures: int,
    error: ErrorInfo,
    usage: Usage | None,
) -> None:
    """A sub-step waits for its next attempt. `substep`: its number in the node, and its name."""
    key, name = substep
    pos = decision.pos
    pause = retry_delay(policy, failures, pos.run, execution.scope, node.id, execution.visit, key)
    token = f"{AGAIN}:{execution.scope}{node.id}.{execution.visit}.{execution.attempt}.{failures}:{key}"
    _wait_again(
        decision, execution, node, (key, name, str(failures)), decision.now + pause, token, error, usage
    )


def continue_back_off(decision: Decision, execution: Exec, node: Node, key: str) -> None:
    """A back-off that has lost its timer ends when it would have ended."""
    sub = execution.subs[key]
    token = f"{AGAIN}:{execution.scope}{node.id}.{execution.visit}.{execution.attempt}.{sub.failures}:{key}"
    _wait_again(decision, execution, node, (key, sub.name, str(sub.failures)), int(sub.value), token)


def _wait_again(
    decision: Decision,
    execution: Exec,
    node: Node,
    substep: tuple[str, str, str],
    wake: int,
    token: str,
    error: ErrorInfo | None = None,
    usage: Usage | None = None,
) -> None:
    body = AttemptBody(STEP_RETRY, error, wake, token, nodes=list(substep), usage=usage)
    side = Side(timers=[NewTimer(token, wake)])
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, outcome="retry", side=side
    )
    apply_record(decision.graph, decision.pos, record, body)


def restart(decision: Decision, execution: Exec, reason: str, *, inbox: int = 0) -> None:
    """The node runs again. Only `retry` counts against its attempts; a crash or a wait does not."""
    pos = decision.pos
    node = node_of(decision.graph, pos, execution)
    body = AttemptBody(reason)
    side = Side(inbox_done=[inbox] if inbox else [])
    # Its sleeps too: one that the next attempt comes to again gets a new timer, for the same time.
    side.close_timers += [token for token in (execution.token, *naps_of(pos, execution)) if token]
    holds.close_holds(pos, execution, side, "superseded")
    open_side = side if side.inbox_done or side.close_timers or side.close_holds else None
    record = decision.draft(
        Kind.attempt, body, node=node.id, execution=execution, effect=node.effect, side=open_side
    )
    # The retry record has counted this attempt already.
    if reason != "woke":
        record.attempt = execution.attempt + 1
    apply_record(decision.graph, pos, record, body)
    if node.kind in PARENTS:
        settle.enter(decision, execution)
    else:
        decision.starts.append(execution)
