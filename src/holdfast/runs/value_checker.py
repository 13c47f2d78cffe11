"""Values that do not come from a handler, checked against the state's types, which only the worker knows."""

from __future__ import annotations

from typing import Any

from holdfast.engine.decision import Decision, node_of
from holdfast.errors import HoldfastError, StateError
from holdfast.model.child_scopes import as_input
from holdfast.model.graph import NodeKind
from holdfast.model.position import Exec, Scope
from holdfast.model.program import Program
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.reducer_marks import CUSTOM
from holdfast.model.step_writes import check_ops
from holdfast.model.values import MISSING
from holdfast.types.record import Op
from holdfast.types.text import clean_text

_GIVES = {
    NodeKind.hold: "the answer to {}",
    NodeKind.map: "what the items of {} came to",
    NodeKind.subflow: "what {} came to",
    NodeKind.task: "what is said to have come of {}",
}


class TypedValues:
    """Implements `holdfast.engine.decision.ValueChecker`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def ops(self, decision: Decision, execution: Exec, ops: list[Op]) -> list[Op] | ErrorInfo:
        scope = decision.pos.scopes[execution.scope]
        program = self._program.at(scope.graph)
        try:
            found = [self._taken(program, scope, execution, op) if op[0] == "scratch" else op for op in ops]
            check_ops(scope.tree, execution.frame, found)
            return found
        except Exception as error:  # a reducer or a type of the user may raise anything
            node = node_of(decision.graph, decision.pos, execution)
            return _type_error(_GIVES.get(node.kind, "{}").format(repr(node.id)), error)

    def _taken(self, program: Program, scope: Scope, execution: Exec, op: Op) -> Op:
        _, name, _, value = op
        seen: dict[str, Any] = {}
        if program.graph.spec.reducers.get(name, "").startswith(CUSTOM):
            held = scope.tree.read(execution.frame, "scratch", name)
            seen = {} if held is MISSING else {name: held}
        if program.graph.nodes[execution.node].kind is NodeKind.task:
            return program.schema.ops({name: value}, seen)[0]
        return program.schema.take(name, value, seen)

    def inputs(self, decision: Decision, execution: Exec) -> ErrorInfo | None:
        node = node_of(decision.graph, decision.pos, execution)
        schema = self._program.at(decision.pos.scopes[execution.scope].graph).at(node.body).schema
        for index, given in enumerate(execution.items or ()):
            which = f"item {index} of {node.id!r}" if node.map else f"the input of {node.id!r}"
            try:
                for name, value in as_input(given).items():
                    schema.fit(name, value)
            except Exception as error:
                return _type_error(which, error)
        return None

    def stops(self, decision: Decision) -> bool:
        return True


def _type_error(what: str, error: Exception) -> ErrorInfo:
    kind = "" if isinstance(error, HoldfastError) else f"{type(error).__name__}: "
    text = f"{what} does not fit the state: {kind}{clean_text(error)}"
    return ErrorInfo(StateError.code, "StateError", clean_text(text))
