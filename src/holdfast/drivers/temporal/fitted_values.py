"""Values from outside, fitted to the state's types in an activity: code of the flow, which the workflow has
not."""

from __future__ import annotations

from holdfast.drivers.temporal.payloads import MOST_ITEMS, FitReply, Wire
from holdfast.engine.decision import Decision, node_of
from holdfast.errors import EngineError
from holdfast.model.graph import Node
from holdfast.model.position import Exec
from holdfast.model.program import Program
from holdfast.model.record_bodies import ErrorInfo
from holdfast.runs.value_checker import TypedValues
from holdfast.types.record import Op


class FittedValues:
    """Implements `ValueChecker`, and keeps each question with its reply, for the workflow."""

    def __init__(self, program: Program, wire: Wire) -> None:
        self._typed = TypedValues(program)
        self._wire = wire
        self.found: list[tuple[bytes, FitReply]] = []

    def ops(self, decision: Decision, execution: Exec, ops: list[Op]) -> list[Op] | ErrorInfo:
        question = self._wire.question(execution, ops)
        fitted = self._typed.ops(decision, execution, ops)
        is_error = isinstance(fitted, ErrorInfo)
        reply = FitReply(error=fitted) if is_error else FitReply(ops=self._wire.pack_ops(fitted))
        self.found.append((question, reply))
        return fitted

    def inputs(self, decision: Decision, execution: Exec) -> ErrorInfo | None:
        node = node_of(decision.graph, decision.pos, execution)
        error = _too_wide(node, execution) or self._typed.inputs(decision, execution)
        self.found.append((self._wire.question(execution, None), FitReply(error=error)))
        return error

    def stops(self, decision: Decision) -> bool:
        return True


def _too_wide(node: Node, execution: Exec) -> ErrorInfo | None:
    items = len(execution.items or ())
    at_once = min(items, node.map.concurrency or items) if node.map is not None else 0
    if at_once <= MOST_ITEMS:
        return None
    text = (
        f"map node {node.id!r} starts {at_once:,} items together, and a run on a Temporal cluster can start "
        f"{MOST_ITEMS:,}. Give the map `concurrency=`, or run the flow on the built-in workers."
    )
    return ErrorInfo(EngineError.code, EngineError.__name__, text)
