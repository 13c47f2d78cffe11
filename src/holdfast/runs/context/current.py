"""The context of the handler that runs here, for code that is not given it: integrations with other
frameworks (IN-51)."""

from __future__ import annotations

from typing import Any

from holdfast.runs.context.context import Context
from holdfast.runs.context.substeps import inside_step
from holdfast.telemetry import current_node


def current_context() -> Context | None:
    """None outside of a handler, and inside a sub-step, which is recorded as a whole."""
    at: Any = current_node.get()
    if at is None or inside_step.get():
        return None
    session, execution = at
    execution = execution or session.inline
    return execution and session.contexts.get((execution.scope, execution.node))


def current_session() -> Any:
    """The session of the run whose handler is at work here; None outside of one."""
    at: Any = current_node.get()
    return None if at is None else at[0]
