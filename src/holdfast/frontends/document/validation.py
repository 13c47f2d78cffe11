"""Problems that the graph's own validation finds, in terms of the document (CV-33)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from holdfast.frontends.document.node_type import ERROR, DocumentNode
from holdfast.frontends.document.node_types.loop import LOOP_END, NEXT
from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.frontends.document.topology import PORT_UNKNOWN, UNREADABLE
from holdfast.model.diagnostics import GraphProblem, Severity

_REPORTED: Final = frozenset(
    {
        # By the document's own rules, with a better place.
        "unknown-name", "unknown-field", "expression", "template", "unreachable", "no-start", "no-nodes",
        "edge-source", "edge-target", "start-with-edge", "effect-undeclared", "timer", "duplicate-edge",
        "subflow-unknown", "reducer", "loop-cap", "decision-truth", "otherwise", "edge-mixed", "reroute",
        "option-type",
    }
)  # fmt: skip
_FIELDS: Final = {
    "hold-options": "options", "hold-form": "sections", "hold-priority": "priority", "assignee": "assignee",
    "on-timeout": "on_timeout", "escalate-target": "on_timeout", "timeout-branch": "on_timeout",
    "no-timeout": "on_timeout", "default-option": "options", "approving-default": "on_timeout",
    "hold-context": "context", "field-name": "decision_bind", "breakpoint": "breakpoint",
    "retry-attempts": "retry", "idempotency-key": "idempotency_key", "field-kind": "sections",
    "quorum": "wait", "join-single": "wait", "on-item-failure": "on_item_failure",
    "concurrency": "concurrency", "on-violation": "on_violation", "reroute": "on_violation",
    "tolerance": "tolerated_failures", "hold-into": "bind", "free-answer": "options",
}  # fmt: skip
_FIXES: Final = {
    "cycle": "put the nodes of the cycle into a loop",
    "no-edge": "add an edge with otherwise: true, to an end if nothing else is to follow",
    "no-timeout": "add timeout",
    "concurrent-set": "give the variable a reducer, or use two variables",
    "default-option": "mark one option: {id: reject, default: true}",
    "breakpoint": "rename that node",
    "hold-into": "give the node another bind, or another decision_bind",
    "join-decision": "let a join wait for all of its branches by their number (wait: 2), or test the "
    "decisions in a condition behind it",
}


def report_graph_problems(
    problems: Iterable[GraphProblem], nodes: Mapping[str, DocumentNode], report: ProblemReport
) -> None:
    edges = {edge.id: edge.path for node in nodes.values() for edge in node.leaving}
    asked = _conditions_by_edge(nodes.values())
    misled = report.edges_with(PORT_UNKNOWN)
    for problem in problems:
        if problem.edge in misled:
            continue  # what its port stands for is not known
        node = nodes.get(problem.node or "")
        if problem.rule in _REPORTED or (node is not None and _is_consequence(problem.rule, node)):
            continue
        path, about = _path(problem, node, edges), {"node": problem.node, "edge": problem.edge}
        if problem.edge in asked:
            path, name = asked[problem.edge]
            about = {"node": name, "edge": None}
        add = {Severity.error: report.error, Severity.warning: report.warn}.get(problem.severity, report.hint)
        fix = _fix(problem, node) or "docs/reference/flow-documents.md says what is allowed"
        add(path, problem.rule, problem.message, fix, **about)


def _conditions_by_edge(nodes: Iterable[DocumentNode]) -> dict[str | None, tuple[Path, str]]:
    """Where the condition of an edge stands that the document has in the config of a node, and the node."""
    found: dict[str | None, tuple[Path, str]] = {}
    for node in nodes:
        if node.type is LOOP_END:
            loop = node.id.removesuffix(NEXT)
            found[f"{node.id}->{loop}"] = node.at("while"), loop
        elif node.type.name == "condition":
            found |= {
                edge.id: (node.at("when"), node.id) for edge in node.leaving if edge.port in ("true", "false")
            }
    return found


def _fix(problem: GraphProblem, node: DocumentNode | None) -> str | None:
    if problem.rule == "concurrent-set" and node is not None and hasattr(node.config, "decision_bind"):
        # With a reducer the ports of one would follow the decision of the other.
        return "give one of the two another decision_bind"
    return _FIXES.get(problem.rule, problem.fix)


def check_single_conditions(nodes: Iterable[DocumentNode], report: ProblemReport) -> None:
    """Where the only edge of a node has a condition. Of several, the graph's own validation finds gaps."""
    for node in nodes:
        ways = [edge for edge in node.leaving if edge.port != ERROR]
        if len(ways) == 1 and ways[0].edge.when is not None:
            message = f"it is the only edge of {node.id!r}: if its condition does not hold, nothing follows"
            if node.node.parent is None:
                message += ", and the run completes without an end"
            report.warn(ways[0].path, "no-edge", message, _FIXES["no-edge"], edge=ways[0].id)


def _is_consequence(rule: str, node: DocumentNode) -> bool:
    """Whether it may follow from what could not be read of the node."""
    if node.type is UNREADABLE:
        return True
    if rule == "no-timeout" and "timeout" in node.given:
        return True  # there is one, which is no duration
    if rule == "no-edge" and node.cut:
        return True  # the edge is there, and wrong
    if rule == "field-name" and node.broken:
        return True  # that it is no name is said where it stands
    field = _FIELDS.get(rule)
    return node.rests_on_broken((field,)) if field is not None else bool(node.broken) and rule != "cycle"


def _path(problem: GraphProblem, node: DocumentNode | None, edges: Mapping[str, Path]) -> Path:
    if problem.edge is not None and problem.edge in edges:
        return edges[problem.edge]
    if node is None:
        return ()
    field = _FIELDS.get(problem.rule)
    return node.at(field) if field is not None and field in node.given else node.path
