"""A node that runs another flow: what the sub-flow's result becomes. Its one child is opened and completed by
`fan_out`, its input is made by `model.child_scopes`."""

from __future__ import annotations

from typing import Any

from holdfast.model.expr import MISSING, walk
from holdfast.model.graph import Node
from holdfast.types.record import Op


def subflow_outputs(node: Node, result: Any) -> list[Op]:
    """What the result of a sub-flow writes into the state of the flow around it: the fields that the node
    names in `outputs`, or all of it as an artifact."""
    assert node.subflow is not None
    if node.subflow.outputs is None:
        return [("artifacts", node.output_as or node.id, "set", result["artifacts"] or result["state"])]
    ops: list[Op] = []
    for field, path in node.subflow.outputs.items():
        value = walk(result, tuple(path.split(".")))
        if value is MISSING:
            value = walk(result["state"], tuple(path.split(".")))
        ops.append(("scratch", field, "set", None if value is MISSING else value))
    return ops
