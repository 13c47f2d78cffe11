"""A node that runs another flow: what the sub-flow's result becomes. Its one child is opened and completed by
`fan_out`, its input is made by `model.child_scopes`."""

from __future__ import annotations

from typing import Any

from holdfast.engine.decision import Decision
from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.expressions import MISSING, ExprSyntaxError, Path, Resolve, compile_expr, walk
from holdfast.model.graph import Node
from holdfast.types.record import Op


def subflow_outputs(decision: Decision, node: Node, result: Any) -> list[Op]:
    """What the result of a sub-flow writes into the state of the flow around it: the fields that the node
    names in `outputs`, or all of it as an artifact. Raises MissingNameError or NotComparableError."""
    assert node.subflow is not None
    if node.subflow.outputs is None:
        return [("artifacts", node.output_as or node.id, "set", result["artifacts"] or result["state"])]
    records = decision.pos.strict_names

    def resolve(path: Path) -> object:
        value = walk(result, path, records=records)
        return walk(result["state"], path, records=records) if value is MISSING else value

    outputs = node.subflow.outputs.items()
    return [("scratch", field, "set", _output(decision, text, resolve)) for field, text in outputs]


def _output(decision: Decision, text: str, resolve: Resolve) -> Any:
    try:
        wanted = compile_expr(text)
    except ExprSyntaxError:
        # A path of any keys, which is not an expression.
        value = resolve(tuple(text.split(".")))
        return None if value is MISSING else value
    try:
        return wanted.evaluate(resolve)
    except (MissingNameError, NotComparableError):
        if decision.is_strict():
            raise
        value = wanted.lenient(resolve)
        return None if value is MISSING else value
