"""Edges of one port that depend on conditions, and those beside them.

An edge without a condition is taken together with those whose conditions hold. Beside them it is nearly
always meant for the other cases, and leads around what they lead to: an approval, say. It has to say which.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from holdfast.frontends.document.node_type import (
    EDGE_MIXED,
    ERROR,
    OTHERWISE,
    OTHERWISE_FIX,
    OUT,
    DocumentNode,
)
from holdfast.frontends.document.node_types.holds import DecisionConfig
from holdfast.frontends.document.node_types.loop import LOOP_END, NEXT
from holdfast.frontends.document.problem import Path, ProblemReport

_INSTEAD = {"condition": "lead from its port 'false' instead", "router": "lead from its port 'else' instead"}


def check_edge_sets(nodes: Iterable[DocumentNode], broken: Collection[Path], report: ProblemReport) -> None:
    """`broken`: where values of the document could not be read."""
    unread = {path[:2] for path in broken}
    for node in nodes:
        if node.type is LOOP_END:
            _check_loop(node, report)
        elif unread.isdisjoint(edge.path for edge in node.leaving):
            _check_out(node, report)


def _check_out(node: DocumentNode, report: ProblemReport) -> None:
    edges = node.from_port(OUT)
    conditional = [edge for edge in edges if edge.edge.when is not None]
    for edge in edges:
        if edge.edge.otherwise and not conditional and OUT not in node.cut:
            message = f"it is taken if no condition holds, but no edge of {node.id!r} has one"
            fix = _INSTEAD.get(node.type.name, "give another edge a when, or remove otherwise")
            report.error((*edge.path, OTHERWISE), OTHERWISE, message, fix, edge=edge.id)
        elif edge.edge.is_free and conditional and not _has_own_rule(node):
            message = f"it is always taken, also where the condition of {conditional[0].id!r} beside it holds"
            report.error(edge.path, EDGE_MIXED, message, OTHERWISE_FIX, edge=edge.id)


def _has_own_rule(node: DocumentNode) -> bool:
    """Holds and nodes that decide say it of their ports. A `parallel` leads on by all of its edges, as its
    name says."""
    by_port = node.type.name in _INSTEAD and any(edge.port not in (OUT, ERROR) for edge in node.leaving)
    return by_port or isinstance(node.config, DecisionConfig) or node.type.name == "parallel"


def _check_loop(node: DocumentNode, report: ProblemReport) -> None:
    for edge in node.leaving:
        if not edge.edge.is_free:
            key = OTHERWISE if edge.edge.otherwise else "when"
            message = (
                f"the loop {node.id.removesuffix(NEXT)!r} leads on after its last turn, without a condition"
            )
            fix = "lead to a condition, or to another node whose edges have the conditions"
            report.error((*edge.path, key), "edge-when", message, fix, edge=edge.id)
