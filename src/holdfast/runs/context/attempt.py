"""One attempt at a node, shared by the parts of its context: its run, and whether it may still act."""

from __future__ import annotations

from holdfast.errors import OutcomeUnknownError
from holdfast.model.graph import Node
from holdfast.model.position import Exec
from holdfast.model.record_bodies import ErrorInfo
from holdfast.runs.driver.context_calls import ContextCalls


class Attempt:
    """Open until it is closed, and until one of its sub-steps is in doubt."""

    __slots__ = ("calls", "closed", "doubt", "execution", "node", "session")

    def __init__(self, calls: ContextCalls, execution: Exec, node: Node) -> None:
        self.calls = calls
        self.session = calls.session
        self.execution = execution
        self.node = node
        # Why it is closed.
        self.closed = ""
        # A sub-step whose outcome is unknown: nothing else is done in this attempt.
        self.doubt: tuple[str, ErrorInfo] | None = None

    def check_open(self) -> None:
        if self.closed:
            raise RuntimeError(f"the context of node {self.node.id!r} is closed: {self.closed}")
        if self.doubt is not None:
            raise OutcomeUnknownError(
                f"a step of {self.node.id!r} has an unknown outcome: {self.doubt[1].message}"
            )
