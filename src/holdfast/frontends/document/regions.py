"""Nodes inside of others: the body of a map becomes a graph of its own, the body of a loop a part of the
graph around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from holdfast.frontends.document.document import FlowEdge, FlowNode
from holdfast.frontends.document.limits import MAX_NESTED
from holdfast.frontends.document.names import ReadText
from holdfast.frontends.document.node_type import ERROR, OUT, DocumentEdge, DocumentNode
from holdfast.frontends.document.node_types.loop import BODY, DONE, LOOP_END, NEXT
from holdfast.frontends.document.problem import ProblemReport
from holdfast.frontends.document.registry import node_types

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
        fix = report.near(parent, nodes) or "name a map or a loop"
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
    around = _around(node.id, nodes)
    if len(around) > MAX_NESTED:
        message = f"it is inside of more than {MAX_NESTED} maps and loops"
        report.error(path, "document-depth", message, "move the inner ones to a sub-flow", node=node.id)
        return False
    if node.id in around:
        report.error(path, "parent-unknown", "it is inside of itself", "remove parent", node=node.id)
        return False
    return True


def _around(name: str, nodes: Nodes) -> list[str]:
    """From the inside; not all of them if there are too many."""
    found: list[str] = []
    parent = nodes[name].node.parent
    while parent is not None and parent in nodes and parent not in found and len(found) <= MAX_NESTED:
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
    inside: dict[str, list[str]] = {}
    for name, node in nodes.items():
        if node.node.parent is not None:
            inside.setdefault(node.node.parent, []).append(name)
    if not inside and not any(_parent(node) for node in nodes.values()):
        return dict(nodes)
    found = {name: replace(node, inside=tuple(inside.get(name, ()))) for name, node in nodes.items()}
    behind: dict[str, DocumentNode] = {}
    for name in sorted(found, key=lambda each: len(_around(each, nodes))):
        if found[name].type.name == "loop" and found[name].inside:
            _close(found, behind, name, report)
    # The node behind a loop stands beside it.
    ordered: dict[str, DocumentNode] = {}
    for name, node in found.items():
        ordered[name] = node
        if name in behind:
            ordered[behind[name].id] = behind[name]
    return _with_shares(ordered, list(texts))


def _parent(node: DocumentNode) -> bool:
    kind = node_types().get(node.node.type)
    return kind is not None and kind.is_parent


def _close(
    nodes: dict[str, DocumentNode], behind: dict[str, DocumentNode], loop: str, report: ProblemReport
) -> None:
    """Header -> first nodes, last nodes -> `{id}__next`, which has the loop's own edges on."""
    header, after = nodes[loop], f"{loop}{NEXT}"
    if after in nodes:
        message = f"the loop needs the id {after!r} for itself"
        report.error((*nodes[after].path, "id"), "id-clash", message, "choose another id", node=after)
        return
    reached = {edge.target for name in header.inside for edge in nodes[name].leaving}
    first = [name for name in header.inside if name not in reached] or list(header.inside[:1])
    errors = tuple(edge for edge in header.leaving if edge.port == ERROR)
    own = tuple(edge for edge in header.leaving if edge.port != ERROR)
    made = FlowNode(id=after, type=NEXT, parent=header.node.parent)
    behind[loop] = replace(header, node=made, type=LOOP_END, leaving=own, inside=())
    nodes[loop] = replace(header, leaving=(*(_link(header, BODY, each) for each in first), *errors))
    for name in header.inside:
        nodes[name] = _leading_on(nodes[name], after)


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
    reads: dict[str, set[str]] = {}
    for text in texts:
        reads.setdefault(text.node, set()).update(text.names)
    shares: dict[str, set[str]] = {}
    gives: dict[str, set[str]] = {}
    for name, node in nodes.items():
        maps = [each for each in _around(name, nodes) if nodes[each].type.name == "map"]
        for each in maps:
            shares.setdefault(each, set()).update(reads.get(name, ()))
        if maps:
            # Nothing of a map inside of the map: only its own result.
            gives.setdefault(maps[0], set()).update(node.type.writes(node))
    found = dict(nodes)
    for name in shares:
        own = set(nodes[name].type.scope_names(nodes[name]))
        found[name] = replace(
            nodes[name],
            shares=tuple(sorted(shares[name] - own)),
            gives=tuple(sorted(gives.get(name, ()))),
        )
    return found


def members_by_graph(nodes: Nodes) -> dict[str | None, list[DocumentNode]]:
    """The nodes of each graph, by the map whose inside it is: those directly in it and those of its loops."""
    found: dict[str | None, list[DocumentNode]] = {None: []}
    for name, node in nodes.items():
        around = (each for each in _around(name, nodes) if nodes[each].type.name == "map")
        found.setdefault(next(around, None), []).append(node)
    return found


def first_nodes(members: Iterable[DocumentNode]) -> tuple[str, ...]:
    found = list(members)
    reached = {edge.target for node in found for edge in node.leaving}
    return tuple(node.id for node in found if node.id not in reached)
