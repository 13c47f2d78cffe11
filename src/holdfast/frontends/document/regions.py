"""Nodes inside of others: the body of a map becomes a graph of its own, the body of a loop a part of the
graph around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from holdfast.frontends.document.document import FlowEdge, FlowNode
from holdfast.frontends.document.names import ReadText
from holdfast.frontends.document.node_type import ERROR, OUT, DocumentEdge, DocumentNode
from holdfast.frontends.document.node_types.loop import BODY, DONE, LOOP_END, NEXT
from holdfast.frontends.document.problem import ProblemReport
from holdfast.frontends.document.registry import node_types
from holdfast.model.checks.names import near_name

Nodes = Mapping[str, DocumentNode]
_NO_WAY_ON = (OUT, ERROR, "timeout", "violation")
"""Ports that decide nothing by themselves, or lead aside."""


def check_parents(nodes: Nodes, report: ProblemReport) -> dict[str, DocumentNode]:
    """Without the parents and edges that cannot stand; these are reported."""
    found: dict[str, DocumentNode] = {}
    for name, node in nodes.items():
        parent = node.node.parent
        if parent is None or _sound_parent(node, parent, nodes, report):
            found[name] = node
        else:
            found[name] = replace(node, node=replace(node.node, parent=None))
    return {name: _within(node, found, report) for name, node in found.items()}


def _sound_parent(node: DocumentNode, parent: str, nodes: Nodes, report: ProblemReport) -> bool:
    path = (*node.path, "parent")
    if parent not in nodes:
        fix = near_name(parent, nodes) or "name a map or a loop"
        report.error(path, "parent-unknown", f"there is no node {parent!r}", fix, node=node.id)
        return False
    kind = node_types().get(nodes[parent].node.type)
    if kind is not None and not kind.is_parent:
        message = f"{parent!r} is a {kind.name}, which has no inside"
        report.error(path, "parent-unknown", message, "name a map or a loop", node=node.id)
        return False
    if node.node.type in ("start", "end"):
        message = f"a {node.node.type} cannot be inside of {parent!r}"
        report.error(path, "crosses-parent", message, "remove parent", node=node.id)
        return False
    if node.id in _around(node.id, nodes):
        report.error(path, "parent-unknown", "it is inside of itself", "remove parent", node=node.id)
        return False
    return True


def _around(name: str, nodes: Nodes) -> list[str]:
    found: list[str] = []
    parent = nodes[name].node.parent
    while parent is not None and parent in nodes and parent not in found:
        found.append(parent)
        parent = nodes[parent].node.parent
    return found


def _within(node: DocumentNode, nodes: Nodes, report: ProblemReport) -> DocumentNode:
    """Without edges into or out of a map or loop."""
    kept: list[DocumentEdge] = []
    for edge in node.leaving:
        inside, beyond = node.node.parent, nodes[edge.target].node.parent
        if inside == beyond:
            kept.append(edge)
            continue
        border = inside if inside is not None else beyond
        report.error(
            edge.path, "crosses-parent", f"it crosses the border of {border!r}",
            f"connect {border!r} itself, or move a node", edge=edge.id,
        )  # fmt: skip
    return replace(node, leaving=tuple(kept))


def with_regions(nodes: Nodes, texts: Iterable[ReadText], report: ProblemReport) -> dict[str, DocumentNode]:
    """With what is inside of each parent; loops with the edges that close them, and the nodes behind them."""
    found: dict[str, DocumentNode] = {}
    for name, node in nodes.items():
        inside = (
            tuple(each.id for each in nodes.values() if each.node.parent == name) if _parent(node) else ()
        )
        found[name] = replace(node, inside=inside)
    for name in sorted(found, key=lambda each: len(_around(each, nodes))):
        if found[name].type.name == "loop" and found[name].inside:
            found = _closed(found, name, report)
    return _with_shares(found, list(texts))


def _parent(node: DocumentNode) -> bool:
    kind = node_types().get(node.node.type)
    return kind is not None and kind.is_parent


def _closed(nodes: dict[str, DocumentNode], loop: str, report: ProblemReport) -> dict[str, DocumentNode]:
    """Header -> first nodes, last nodes -> `{id}__next`, which has the loop's own edges on."""
    header, after = nodes[loop], f"{loop}{NEXT}"
    if after in nodes:
        message = f"the loop needs the id {after!r} for itself"
        report.error((*nodes[after].path, "id"), "id-clash", message, "choose another id", node=after)
        return nodes
    reached = {edge.target for name in header.inside for edge in nodes[name].leaving}
    first = [name for name in header.inside if name not in reached] or list(header.inside[:1])
    errors = tuple(edge for edge in header.leaving if edge.port == ERROR)
    own = tuple(edge for edge in header.leaving if edge.port != ERROR)
    found: dict[str, DocumentNode] = {}
    for name, node in nodes.items():
        if name == loop:
            found[name] = replace(header, leaving=(*(_link(header, BODY, each) for each in first), *errors))
            made = FlowNode(id=after, type=NEXT, parent=header.node.parent)
            found[after] = replace(header, node=made, type=LOOP_END, leaving=own, inside=())
        else:
            found[name] = _leading_on(node, after) if name in header.inside else node
    return found


def _leading_on(node: DocumentNode, after: str) -> DocumentNode:
    """What is not connected inside of a loop leads to its end."""
    if node.from_port(OUT):
        return node
    if node.type.name == "loop":
        open_ports = [] if node.from_port(DONE) else [DONE]
    else:
        deciding = [port for port in node.type.ports(node) if port not in _NO_WAY_ON]
        open_ports = [port for port in deciding if not node.from_port(port)] if deciding else [OUT]
    return replace(node, leaving=(*node.leaving, *(_link(node, port, after) for port in open_ports)))


def _link(node: DocumentNode, port: str, target: str) -> DocumentEdge:
    edge = FlowEdge(source=node.id, source_port=port, target=target)
    return DocumentEdge(id=edge.name, edge=edge, path=node.path, target=target)


def _with_shares(nodes: dict[str, DocumentNode], texts: list[ReadText]) -> dict[str, DocumentNode]:
    """For each map: what its inside reads of the state around it, and what it sets."""
    found = dict(nodes)
    for name, node in nodes.items():
        if node.type.name == "map" and node.inside:
            members = {each for each in nodes if name in _around(each, nodes)}
            reads = {each for text in texts if text.node in members for each in text.names}
            gives = {each for member in members for each in _gives(nodes[member], name, nodes)}
            own = set(node.type.scope_names(node))
            found[name] = replace(node, shares=tuple(sorted(reads - own)), gives=tuple(sorted(gives)))
    return found


def _gives(node: DocumentNode, map_id: str, nodes: Nodes) -> tuple[str, ...]:
    """Nothing of a map inside of the map: only its own result."""
    between = _around(node.id, nodes)
    between = between[: between.index(map_id)]
    return () if any(nodes[each].type.name == "map" for each in between) else node.type.writes(node)


def members_of(nodes: Nodes, map_id: str | None) -> list[DocumentNode]:
    """The nodes of one graph: those directly in it, and those of its loops."""
    return [node for node in nodes.values() if _graph_of(node, nodes) == map_id]


def _graph_of(node: DocumentNode, nodes: Nodes) -> str | None:
    return next((each for each in _around(node.id, nodes) if nodes[each].type.name == "map"), None)


def first_nodes(members: Iterable[DocumentNode]) -> tuple[str, ...]:
    found = list(members)
    reached = {edge.target for node in found for edge in node.leaving}
    return tuple(node.id for node in found if node.id not in reached)
