"""Which nodes there are and how edges connect them: ids, ports, disabled nodes, ways from start to end."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from holdfast.frontends.document.document import FlowDocument, FlowEdge, FlowNode, Json
from holdfast.frontends.document.limits import MAX_CONFIG_BYTES, MAX_EDGES
from holdfast.frontends.document.node_type import (
    ERROR,
    OTHERWISE,
    OUT,
    DocumentEdge,
    DocumentNode,
    Duration,
    FlowFacts,
    NodeConfig,
    NodeType,
    RetryConfig,
)
from holdfast.frontends.document.problem import Path, ProblemReport
from holdfast.frontends.document.registry import node_types
from holdfast.frontends.document.struct_reader import StructReader
from holdfast.types.duration import DurationError, parse_duration
from holdfast.types.text import clean_text

PORT_UNKNOWN: Final = "port-unknown"
_MOST_FOLLOWED: Final = 20 * MAX_EDGES
"""Edges between disabled nodes, which are followed again from each node that leads to one of them."""
_DEFAULTS: Final = ("timeout", "retry", "in_doubt")


class UnreadableType(NodeType):
    """In place of a node that could not be read: it keeps its edges, so that others are not reported too."""

    name = "?"
    summary = ""


UNREADABLE: Final = UnreadableType()


class NodeDefaults(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config.defaults`: for the nodes that do work."""

    timeout: Duration | None = None
    retry: RetryConfig | None = None
    in_doubt: Literal["ask", "retry", "fail"] | None = None


def document_nodes(
    document: FlowDocument, flow: FlowFacts, report: ProblemReport
) -> tuple[dict[str, DocumentNode], list[DocumentNode]]:
    """By id, in the order of the document, with their edges; then those whose id another node has."""
    found: dict[str, DocumentNode] = {}
    doubles: list[DocumentNode] = []
    defaults = _defaults(document, report)
    for node, path in zip(document.nodes, document.node_paths, strict=True):
        if node.id in found:
            message = f"two nodes have the id {node.id!r}"
            report.error((*path, "id"), "node-duplicate", message, "give one another id", node=node.id)
        typed = _typed(node, path, flow, defaults, report, document.broken)
        if found.setdefault(node.id, typed) is not typed:
            doubles.append(typed)
    return _with_edges(document, found, report), doubles


def _defaults(document: FlowDocument, report: ProblemReport) -> Json:
    given = document.fields.config.defaults
    place = ("config", "defaults")
    reader = StructReader(report)
    read = reader.read(NodeDefaults, given, place)
    if read is None:
        return {}
    # Reported here, once; a node that would inherit it has none.
    wrong = {path[2] for path in reader.broken if len(path) > 2}
    lengths: list[tuple[Path, Any]] = [(("timeout",), read.timeout)]
    if read.retry is not None:
        lengths += [(("retry", "delay"), read.retry.delay), (("retry", "cap"), read.retry.cap)]
    for path, value in lengths:
        try:
            if value is not None:
                parse_duration(value, allow_zero=path[-1] == "delay")
        except (DurationError, TypeError, ValueError) as error:
            wrong.add(path[0])
            report.error((*place, *path), "duration", str(error), "write text such as 30s, 2d or PT15M")
    return {
        key: value
        for key, value in given.items()
        if key in _DEFAULTS and value is not None and key not in wrong
    }


def _typed(
    node: FlowNode, path: Path, flow: FlowFacts, defaults: Json, report: ProblemReport,
    broken: Collection[Path],
) -> DocumentNode:  # fmt: skip
    known = node_types()
    kind = known.get(node.type)
    given = {key: value for key, value in node.config.items() if value is not None}
    unreadable = DocumentNode(
        node=node, type=UNREADABLE, config=NodeConfig(), given=given, path=path, flow=flow
    )
    if (*path, "type") in broken or (*path, "config") in broken:
        return unreadable  # reported
    if kind is None:
        fix = report.near(node.type, known) or f"use one of {', '.join(known)}"
        message = f"there is no node type {clean_text(node.type, 60)!r}"
        report.error((*path, "type"), "type-unknown", message, fix, node=node.id)
        return unreadable
    if _too_large(given):
        message = f"its config has more than {MAX_CONFIG_BYTES:,} bytes"
        report.error((*path, "config"), "document-size", message, "keep data outside", node=node.id)
        return unreadable
    if kind.defaults:
        given = {**defaults, **given}
    reader = StructReader(report, node=node.id)
    config = reader.read(kind.config, given, (*path, "config"))
    own = len(path) + 1
    return DocumentNode(
        node=node, type=kind, config=config, given=given, path=path, flow=flow,
        broken=frozenset(each[own:] for each in reader.broken),
    )  # fmt: skip


def _too_large(config: Json) -> bool:
    # Most configs are a few lines: measured only where the text of the data is long at all.
    return len(msgspec.json.encode(config)) > MAX_CONFIG_BYTES


def _with_edges(
    document: FlowDocument, nodes: dict[str, DocumentNode], report: ProblemReport
) -> dict[str, DocumentNode]:
    leaving: dict[str, list[DocumentEdge]] = {name: [] for name in nodes}
    seen: dict[str, Path] = {}
    ports: dict[str, Collection[str]] = {}
    cut: dict[str, set[str]] = {name: set() for name in nodes}
    for edge, path in zip(document.edges, document.edge_paths, strict=True):
        if edge.source in nodes:
            if edge.source not in ports:
                ports[edge.source] = dict.fromkeys(
                    (*nodes[edge.source].type.ports(nodes[edge.source]), ERROR)
                )
            if not _check_port(nodes[edge.source], ports[edge.source], edge, path, report):
                cut[edge.source].update(ports[edge.source])  # it may be meant for any of them
        if not _sound(edge, path, nodes, report):
            cut.get(edge.source, set()).add(edge.port)
            continue
        if edge.name in seen:
            message = f"two edges have the id {edge.name!r}"
            report.error(path, "edge-duplicate", message, "remove one, or give it an id", edge=edge.name)
            continue
        seen[edge.name] = path
        leaving[edge.source].append(DocumentEdge(id=edge.name, edge=edge, path=path, target=edge.target))
    found = {
        name: msgspec.structs.replace(
            node,
            leaving=(*leaving[name], *_implied(node, leaving[name], nodes)),
            cut=frozenset(cut[name]),
        )
        for name, node in nodes.items()
    }
    return _without_disabled(found, report)


def _implied(
    node: DocumentNode, leaving: Collection[DocumentEdge], nodes: Mapping[str, DocumentNode]
) -> Iterator[DocumentEdge]:
    """`on_timeout: branch:NODE` is a way to the node, as an edge from the port `timeout` is."""
    taken = {edge.port for edge in leaving}
    for port, target in () if node.node.disabled else node.type.implied_edges(node):
        if port not in taken and target in nodes:
            edge = FlowEdge(source=node.id, target=target, source_port=port)
            yield DocumentEdge(id=edge.name, edge=edge, path=node.at("on_timeout"), target=target)


def _sound(edge: FlowEdge, path: Path, nodes: Mapping[str, DocumentNode], report: ProblemReport) -> bool:
    sound = True
    for end in ("source", "target"):
        name = getattr(edge, end)
        if name not in nodes:
            sound = False
            fix = report.near(name, nodes) or "add the node, or remove the edge"
            report.error((*path, end), "edge-unknown", f"there is no node {name!r}", fix, edge=edge.name)
    if edge.source_port is not None and edge.source_handle not in (None, edge.source_port):
        message = f"source_port is {edge.source_port!r}, sourceHandle {edge.source_handle!r}"
        report.error((*path, "sourceHandle"), "edge-port", message, "remove one of them", edge=edge.name)
        sound = False
    for key in ("when", "otherwise"):
        if getattr(edge, key) and edge.port != OUT:
            message = f"its port {edge.port!r} already says when it is taken"
            fix = f"remove {key}, or use the port 'out'"
            report.error((*path, key), "edge-when", message, fix, edge=edge.name)
            sound = False
    if edge.when is not None and edge.otherwise:
        message = "it has both when and otherwise"
        report.error((*path, "otherwise"), OTHERWISE, message, "remove one of them", edge=edge.name)
        sound = False
    return sound


def _check_port(
    node: DocumentNode, known: Collection[str], edge: FlowEdge, path: Path, report: ProblemReport
) -> bool:
    if node.type is UNREADABLE or node.rests_on_broken(node.type.port_fields):
        return True
    if edge.port in known or (edge.port == OUT and len(known) == 1):
        return True
    report.error(
        (*path, "source_port" if edge.source_handle is None else "sourceHandle"),
        PORT_UNKNOWN,
        f"{node.id!r} has no port {clean_text(edge.port, 60)!r}",
        report.near(edge.port, known) or f"its ports are {', '.join(known)}",
        edge=edge.name,
    )
    return False


def _without_disabled(nodes: dict[str, DocumentNode], report: ProblemReport) -> dict[str, DocumentNode]:
    """Edges pass through disabled nodes: who leads to one leads to what follows it."""
    disabled = {name for name, node in nodes.items() if node.node.disabled}
    if not disabled:
        return nodes
    for name in sorted(disabled):
        _check_disabled(nodes[name], report)
    found: dict[str, DocumentNode] = {}
    behind = _Behind(nodes, disabled)
    left = MAX_EDGES
    for name, node in nodes.items():
        if name in disabled:
            continue
        leaving: dict[str, DocumentEdge] = {}
        for edge in node.leaving:
            targets = [edge.target]
            if edge.target in disabled:
                targets = behind.of(edge.target)
                left -= len(targets)
                if left < 0 or behind.followed > _MOST_FOLLOWED:
                    _refuse_many(nodes[edge.target], report)
                    return nodes  # as if none were disabled: what follows from it is not reported
            for target in targets:
                new = edge if target == edge.target else _passing(edge, target)
                twin = leaving.get(new.id)
                if twin is not None and twin.edge.is_free != new.edge.is_free:
                    # Both stay, so that the one without a condition is seen beside the other.
                    new = msgspec.structs.replace(new, id=f"{new.id} by {edge.target}")
                leaving.setdefault(new.id, new)
        found[name] = msgspec.structs.replace(node, leaving=tuple(leaving.values()))
    return found


def _refuse_many(node: DocumentNode, report: ProblemReport) -> None:
    message = (
        f"an edge to a disabled node is one to each node behind it; with those through {node.id!r} "
        f"there are more than {MAX_EDGES:,} of them"
    )
    fix = "enable the node, or remove it with its edges"
    report.error((*node.path, "disabled"), "document-size", message, fix, node=node.id)


def _passing(edge: DocumentEdge, target: str) -> DocumentEdge:
    return msgspec.structs.replace(edge, id=f"{edge.edge.source}:{edge.port}->{target}", target=target)


def _check_disabled(node: DocumentNode, report: ProblemReport) -> None:
    if node.node.type in ("start", "end"):
        message = f"a {node.node.type} cannot be disabled"
        report.error((*node.path, "disabled"), "disabled", message, "remove disabled", node=node.id)
    for edge in node.leaving:
        if edge.port not in (OUT, ERROR):
            message = (
                f"the disabled node {node.id!r} decides nothing, so its port {edge.port!r} leads nowhere"
            )
            fix = "connect its port 'out', or remove the node"
            report.error(edge.path, "disabled", message, fix, edge=edge.id)
        elif not edge.edge.is_free:
            message = f"the disabled node {node.id!r} has an edge with a condition"
            report.error(edge.path, "disabled", message, "remove the condition", edge=edge.id)


class _Behind:
    """The first nodes behind disabled ones, each once."""

    def __init__(self, nodes: Mapping[str, DocumentNode], disabled: set[str]) -> None:
        self._nodes, self._disabled = nodes, disabled
        self._known: dict[str, list[str]] = {}
        self.followed = 0

    def of(self, name: str) -> list[str]:
        """Not all of them, once `_MOST_FOLLOWED` edges are followed."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> list[str]:
        found, seen, todo = list[str](), {name}, deque([name])
        while todo and self.followed <= _MOST_FOLLOWED:
            here = todo.popleft()
            if here not in self._disabled:
                found.append(here)
                continue
            for edge in self._nodes[here].from_port(OUT):
                self.followed += 1
                if edge.target not in seen:
                    seen.add(edge.target)
                    todo.append(edge.target)
        return found


def reached_from(starts: Iterable[str], steps: Mapping[str, Iterable[str]]) -> set[str]:
    seen = set(starts)
    todo = list(seen)
    while todo:
        for target in steps.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def check_ways(nodes: Mapping[str, DocumentNode], report: ProblemReport) -> set[str]:
    """Exactly one start, and a way from every node to an end (CV-33). Returns what a run can reach."""
    top = {name: node for name, node in nodes.items() if node.node.parent is None}
    starts = [node for node in top.values() if node.node.type == "start"]
    unread = any(node.type is UNREADABLE for node in top.values())  # it may be the start, or an end
    if not starts:
        if not unread:
            report.error(("nodes",), "start-count", "there is no start", "add a node of type start")
        return set(nodes)
    for extra in starts[1:]:
        message = f"there are {len(starts)} starts; {starts[0].id!r} is the first"
        report.error((*extra.path, "type"), "start-count", message, "keep one of them", node=extra.id)
    steps = {name: [edge.target for edge in node.leaving] for name, node in top.items()}
    reached = reached_from([starts[0].id], steps)
    back: dict[str, list[str]] = {}
    for name, targets in steps.items():
        for target in targets:
            back.setdefault(target, []).append(name)
    ends = [name for name, node in top.items() if node.node.type == "end"]
    if not ends and not unread:
        report.error(("nodes",), "no-end", "there is no end", "add a node of type end")
    ending = reached_from(ends, back)
    for name, node in top.items():
        if name not in reached:
            message = "no way leads from the start to it: it never runs"
            report.warn(node.path, "unreachable", message, "connect it, or remove it", node=name)
        elif ends and name not in ending:
            message = "no way leads from it to an end"
            report.error(node.path, "no-way-to-end", message, "connect it to a node of type end", node=name)
    return reached | {name for name, node in nodes.items() if _top(node, nodes) in reached}


def _top(node: DocumentNode, nodes: Mapping[str, DocumentNode]) -> str:
    """The outermost node that it is inside of."""
    seen, parent = {node.id}, node.node.parent
    while parent is not None and parent in nodes and parent not in seen:
        node = nodes[parent]
        seen.add(parent)
        parent = node.node.parent
    return node.id
