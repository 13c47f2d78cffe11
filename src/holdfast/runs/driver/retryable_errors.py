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
)
from holdfast.model.graph import Node, NodeKind
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
    declared = _declared(node, handler, error)
    repeatable = node.effect in REPEATABLE or bool(node.idempotency_key) or node.kind is NodeKind.guardrail
    any_error = not node.retry.retry_on and not (handler and handler.retry_on)
    # These are raised where no outcome is in doubt: the handler says so itself (NotDone), or one of our
    # checks failed, which another attempt would not change.
    certain = isinstance(error, (NotDone, RoutingError, GuardrailError, ScriptError, ReplayMismatchError))
    return HandlerFinished(
        scope=execution.scope,
        node=execution.node,
        visit=execution.visit,
        outcome="fail",
        error=describe(error),
        retryable=declared or isinstance(error, NotDone) or (repeatable and any_error and not certain),
        # Any other error of an effect proves nothing: a request may time out after the other side acted on
        # it.
        unknown=not (repeatable or declared or certain),
        duration=duration,
    )


def _declared(node: Node, handler: NodeHandler | None, error: BaseException) -> bool:
    if handler is not None and handler.retry_on:
        if isinstance(error, handler.retry_on):
            return True
        if isinstance(error, NodeTimeoutError) and TimeoutError in handler.retry_on:
            return True
    text = f"{type(error).__name__}: {clean_text(error)}".lower()
    return any(wanted.lower() in text for wanted in node.retry.retry_on if not wanted.startswith(CLASS))
