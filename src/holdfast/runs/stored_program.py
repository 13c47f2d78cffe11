"""A flow whose code is not loaded here, as far as its stored graph describes it: enough to fork a run of
plain data.

Names and plain types of the state are checked as with the code. Values of the flow's own types cannot be
written back exactly, so a run that has some is refused.
"""

from __future__ import annotations

import ast
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, Literal, NotRequired, TypedDict, Union, cast
from uuid import UUID

from holdfast.model.graph import Graph, GraphSpec
from holdfast.model.program import Program
from holdfast.model.reducer_marks import ReducerMark
from holdfast.model.state_schema import StateSchema
from holdfast.model.syntax_tree import parse_expression
from holdfast.store.rows import RunRow

_KNOWN: Final[dict[str, Any]] = {
    **{cls.__name__: cls for cls in (str, int, float, bool, bytes, list, dict, tuple, set, frozenset)},
    **{cls.__name__: cls for cls in (date, datetime, time, timedelta, Decimal, UUID)},
    "None": None,
    "Any": Any,
}


def stored_program(row: RunRow, graph: Graph) -> Program:
    """What a fork needs of a program, with the code's name from the run."""
    program = Program(
        graph, version=row.version, code={}, handlers={}, routers={}, schema=stored_schema(graph.spec)
    )
    # The same as its source: no other code is known here.
    program.__dict__["code_digest"] = row.code
    return program


def stored_schema(spec: GraphSpec) -> StateSchema:
    marks = {name: ReducerMark(op) for name, op in spec.reducers.items() if "." not in name}
    if spec.fields is None:
        return StateSchema(reducers=marks)
    parts: dict[str, Any] = {
        name: kind if field["required"] else NotRequired[kind]
        for name, field in spec.fields.items()
        for kind in [read_type(field["type"])]
    }
    state = cast("Any", TypedDict)(spec.name, parts)
    return StateSchema(state, extra=_bound(spec), reducers=marks)


def _bound(spec: GraphSpec) -> list[str]:
    """Fields that are not declared: those that holds bind and maps write."""
    holds = [node.hold.bind for node in spec.nodes if node.hold is not None]
    maps = [node.map.into for node in spec.nodes if node.map is not None]
    forms = [node.hold.into for node in spec.nodes if node.hold is not None and node.hold.into]
    return [*holds, *(f"{bind}_result" for bind in holds), *forms, *maps]


def read_type(text: str) -> Any:
    """The type that a stored graph names, or Any if it is one of the flow's own."""
    try:
        return _read(parse_expression(text))
    except (SyntaxError, KeyError, TypeError, ValueError):
        return Any


def _read(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return _KNOWN[node.id]
    if isinstance(node, ast.Constant) and node.value is None:
        return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_read(node.left), _read(node.right)]  # noqa: UP007
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        return _read_generic(node.value.id, node.slice)
    raise KeyError(ast.dump(node))


def _read_generic(name: str, inside: ast.expr) -> Any:
    parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    if name == "Literal":
        return Literal[tuple(ast.literal_eval(part) for part in parts)]
    if name == "Annotated":
        return _read(parts[0])
    kinds = [... if _is_rest(part) else _read(part) for part in parts]
    return _KNOWN[name][tuple(kinds)]


def _is_rest(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value is ...
