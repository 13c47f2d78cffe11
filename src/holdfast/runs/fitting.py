"""Values that no handler returned, held to the types that the state declares: the worker knows them."""

from __future__ import annotations

from holdfast.engine.decision import Decision, node_of
from holdfast.errors import InputError, StateError
from holdfast.model.bodies import ErrorInfo
from holdfast.model.children import as_input
from holdfast.model.graph import NodeKind
from holdfast.model.position import Exec
from holdfast.model.program import Program
from holdfast.types.record import Op
from holdfast.types.wording import told

_GIVES = {
    NodeKind.hold: "the answer to {}",
    NodeKind.map: "what the items of {} came to",
    NodeKind.subflow: "what {} came to",
}


class Fitting:
    """Implements `holdfast.engine.decision.Fits`."""

    def __init__(self, program: Program) -> None:
        self._program = program

    def ops(self, decision: Decision, execution: Exec, ops: list[Op]) -> list[Op] | ErrorInfo:
        schema = self._program.at(decision.pos.scopes[execution.scope].graph).schema
        try:
            return [(*op[:3], schema.fit(op[1], op[3])) if op[0] == "scratch" else op for op in ops]
        except InputError as error:
            node = node_of(decision.graph, decision.pos, execution)
            return _misfit(_GIVES.get(node.kind, "{}").format(repr(node.id)), error)

    def inputs(self, decision: Decision, execution: Exec) -> ErrorInfo | None:
        node = node_of(decision.graph, decision.pos, execution)
        body = node.map.body if node.map else node.subflow.body if node.subflow else ""
        schema = self._program.at(decision.pos.scopes[execution.scope].graph).at(body).schema
        for index, given in enumerate(execution.items or ()):
            which = f"item {index} of {node.id!r}" if node.map else f"the input of {node.id!r}"
            try:
                for name, value in as_input(given).items():
                    schema.fit(name, value)
            except InputError as error:
                return _misfit(which, error)
        return None


def _misfit(what: str, error: InputError) -> ErrorInfo:
    return ErrorInfo(StateError.code, "StateError", told(f"{what} does not fit the state: {error}"))
