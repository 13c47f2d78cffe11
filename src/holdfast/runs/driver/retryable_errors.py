"""Which errors of a handler are retried, and which leave the outcome of an effect unknown (D-15)."""

from __future__ import annotations

from holdfast.engine.messages import HandlerFinished
from holdfast.errors import (
    GuardrailError,
    NodeTimeoutError,
    NotDone,
    ReplayMismatchError,
    RoutingError,
    ScriptError,
    StepFailedError,
    StepTimeoutError,
)
from holdfast.model.graph import Node, NodeKind, RetryPolicy
from holdfast.model.position import Exec
from holdfast.model.program import NodeHandler
from holdfast.runs.driver.handler_result import describe
from holdfast.types.status import REPEATABLE
from holdfast.types.text import clean_text

CLASS = "class:"  # in a policy's `retry_on`: an error class, which the handler knows


def failure(
    node: Node, handler: NodeHandler | None, execution: Exec, error: BaseException, duration: int
) -> HandlerFinished:
    """How a raised error is judged: whether it may be retried, and whether it is known that nothing happened
    (D-15)."""
    declared = is_declared(node.retry, handler.retry_on if handler else (), error)
    repeatable = node.effect in REPEATABLE or bool(node.idempotency_key) or node.kind is NodeKind.guardrail
    any_error = not node.retry.retry_on and not (handler and handler.retry_on)
    # These are raised where no outcome is in doubt: the handler says so itself (NotDone), or one of our
    # checks failed, which another attempt would not change.
    certain = isinstance(error, (NotDone, RoutingError, GuardrailError, ScriptError, ReplayMismatchError))
    # The next attempt of the node would get the same recorded error.
    final = isinstance(error, StepFailedError) and error.final
    return HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        outcome="fail",
        error=describe(error),
        retryable=not final
        and (declared or isinstance(error, NotDone) or (repeatable and any_error and not certain)),
        # Any other error of an effect proves nothing: a request may time out after the other side acted on
        # it.
        unknown=not (repeatable or declared or certain),
        duration=duration,
    )


def is_declared(policy: RetryPolicy, classes: tuple[type[BaseException], ...], error: BaseException) -> bool:
    """Whether `retry_on` names the error, by its class or by a text."""
    if classes:
        if isinstance(error, classes):
            return True
        if isinstance(error, (NodeTimeoutError, StepTimeoutError)) and TimeoutError in classes:
            return True
    text = f"{type(error).__name__}: {clean_text(error)}".lower()
    return any(wanted.lower() in text for wanted in policy.retry_on if not wanted.startswith(CLASS))
