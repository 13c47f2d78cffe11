"""A flow's graph as a picture."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

import msgspec

from holdfast.drawing.picture import EdgeStyle, Highlight, NodeShape, Picture, PictureEdge, PictureNode, State
from holdfast.errors import InputError
from holdfast.model.graph import END, START, Edge, EdgeKind, Graph, Node, NodeKind

_SHAPES = {
    NodeKind.hold: NodeShape.hold,
    NodeKind.timer: NodeShape.timer,
    NodeKind.map: NodeShape.map,
    NodeKind.parallel: NodeShape.map,
    NodeKind.subflow: NodeShape.subflow,
    NodeKind.guardrail: NodeShape.guard,
}


_TURN = "__next"
"""The end of the id of the node behind a loop of a document, which asks for another turn."""
_DONE = "done"
MOST_DRAWN = 20_000
"""Nodes and edges of one picture, with those inside. A flow document has at most 12,000."""


class NodeOverlay(msgspec.Struct, frozen=True, kw_only=True):
    """State, mark and notes of a node of a run."""

    state: State = State.idle
    mark: Highlight = Highlight.none
    note: str = ""
    detail: str = ""


Marking = Callable[[str, Edge], Highlight]


def from_graph(
    graph: Graph,
    shown: Mapping[str, NodeOverlay] | None = None,
    *,
    expand: bool | Collection[str] = False,
    mark: Marking | None = None,
    path: str = "",
    ports: Mapping[str, str] | None = None,
) -> Picture:
    """`ports`: by edge, those of the document that the graph was made of; found by itself.

    `shown` is by node; a node of a sub-flow is named with its path: `child/pay`. `mark` returns the mark
    of an edge, given its graph's path. `expand` also draws the inside of maps and sub-flows: of all, or of
    those named with their path. Raises InputError if that is too much to draw."""
    known = shown or {}
    if not path:
        _require_drawable(graph, expand)
    own = _document_ports(graph)
    leaving = own if own is not None else ports
    nodes = [
        _node(graph, node, known, expand=expand, mark=mark, path=path, ports=leaving) for node in graph.nodes
    ]
    edges = [_edge(edge, mark(path, edge) if mark else Highlight.none, leaving) for edge in graph.edges]
    if leaving is not None:
        nodes, edges = _without_turns(nodes, edges)
    began = mark is not None and any(path + name in known for name in graph.spec.start)
    first = [_dot(START, NodeShape.start)] if graph.spec.start else []
    last = [_dot(END, NodeShape.end)] if any(edge.target == END for edge in graph.edges) else []
    starts = [
        PictureEdge(source=START, target=name, mark=Highlight.taken if began else Highlight.none)
        for name in graph.spec.start
    ]
    return Picture(nodes=(*first, *nodes, *last), edges=(*starts, *edges), title=graph.name)


def _document_ports(graph: Graph) -> dict[str, str] | None:
    """The port of each edge by its id; None: the graph itself was not made of a document."""
    source: Any = (graph.spec.document or {}).get("source")
    if not isinstance(source, Mapping) or "nodes" not in source:
        return None
    edges = cast("list[dict[str, str]]", cast("Mapping[str, Any]", source).get("edges") or [])
    found: dict[str, str] = {}
    for edge in edges:
        port = edge.get("source_port", "out")
        found[edge.get("id") or f"{edge['source']}:{port}->{edge['target']}"] = port
    return found


def _require_drawable(graph: Graph, expand: bool | Collection[str]) -> None:
    """Counted before the picture is made: a body may be that of many nodes, and so may those inside it."""
    count, waiting = 0, [("", graph)]
    while waiting:
        path, at = waiting.pop()
        count += len(at.nodes) + len(at.edges) + len(at.spec.start)
        if count > MOST_DRAWN:
            raise InputError(
                f"the graph {graph.name!r} has more than {MOST_DRAWN:,} nodes and edges to draw.",
                hint="Open fewer maps and sub-flows, or split the flow.",
            )
        for node in at.nodes:
            inner = _inside(at, node, expand, path)
            if inner is not None:
                waiting.append((f"{path}{node.id}/", inner))


def _inside(graph: Graph, node: Node, expand: bool | Collection[str], path: str) -> Graph | None:
    """The graph that is drawn within the node."""
    opens = expand if isinstance(expand, bool) else path + node.id in expand
    return graph.subgraphs.get(node.body) if opens and node.body else None


def _dot(name: str, shape: NodeShape) -> PictureNode:
    return PictureNode(id=name, label="", shape=shape)


def _node(
    graph: Graph,
    node: Node,
    known: Mapping[str, NodeOverlay],
    *,
    expand: bool | Collection[str],
    mark: Marking | None,
    path: str,
    ports: Mapping[str, str] | None,
) -> PictureNode:
    about = known.get(path + node.id, NodeOverlay())
    inner, inside = _inside(graph, node, expand, path), None
    if inner is not None:
        at = f"{path}{node.id}/"
        inside = from_graph(inner, known, expand=expand, mark=mark, path=at, ports=ports)
    return PictureNode(
        id=node.id,
        label=node.id,
        shape=_SHAPES.get(node.kind, NodeShape.task),
        state=about.state,
        mark=about.mark,
        note=about.note,
        detail=about.detail or describe(node),
        inside=inside,
        closed=inside is None and node.body in graph.subgraphs,
    )


def _without_turns(
    nodes: list[PictureNode], edges: list[PictureEdge]
) -> tuple[list[PictureNode], list[PictureEdge]]:
    """The node behind a loop is not in the document. Its loop is drawn in its place: what leads to the node
    leads back to the loop, and what leaves it leaves the loop. If it failed, the loop did."""
    named = {node.id: node for node in nodes}
    turns = {name: name.removesuffix(_TURN) for name in named if name.endswith(_TURN)}
    turns = {name: loop for name, loop in turns.items() if loop in named}
    back = {edge.source: edge for edge in edges if edge.source in turns and edge.target == turns[edge.source]}
    for name, loop in turns.items():
        behind = named[name]
        if behind.state is State.failed:
            named[loop] = msgspec.structs.replace(
                named[loop], state=behind.state, mark=behind.mark, note=behind.note
            )
    found: list[PictureEdge] = []
    for edge in edges:
        if back.get(edge.source) is edge:
            continue
        if edge.target in turns:
            again = back.get(edge.target)
            label = edge.label if again is None or edge.label else again.label
            mark = edge.mark if again is None else again.mark  # it was taken if there was another turn
            edge = msgspec.structs.replace(
                edge, target=turns[edge.target], look=EdgeStyle.loop, label=label, mark=mark
            )
        if edge.source in turns:
            label = edge.label if edge.label not in ("", "otherwise") else _DONE
            edge = msgspec.structs.replace(edge, source=turns[edge.source], label=label, look=EdgeStyle.plain)
        found.append(edge)
    return [named[node.id] for node in nodes if node.id not in turns], found


def describe(node: Node) -> str:
    """A short description of a node, from the graph."""
    lines = [f"{node.kind} node, effect {node.effect}"]
    if node.hold is not None:
        lines.append(f"asks: {node.hold.prompt}")
    if node.retry.attempts > 1:
        lines.append(f"up to {node.retry.attempts} attempts")
    if node.map is not None:
        lines.append(f"for each of {node.map.over}")
    if node.parallel:
        lines.append(f"{len(node.parallel.starts)} branches, {node.parallel.join}")
    return "; ".join(lines)


def _edge(edge: Edge, mark: Highlight, ports: Mapping[str, str] | None) -> PictureEdge:
    return PictureEdge(
        source=edge.source,
        target=edge.target,
        label=edge_label(edge) if ports is None else _document_label(edge, ports.get(edge.id, "")),
        look=_edge_style(edge),
        mark=mark,
        id=edge.id,
    )


def _edge_style(edge: Edge) -> EdgeStyle:
    if edge.loop is not None:
        return EdgeStyle.loop
    if edge.kind is EdgeKind.failure:
        return EdgeStyle.failure
    return EdgeStyle.plain if edge.kind is EdgeKind.always else EdgeStyle.conditional


def _document_label(edge: Edge, port: str) -> str:
    """By the port that the document names, where no condition says more."""
    if edge.loop is not None:
        return f"{edge.when} (max {edge.loop + 1} turns)"
    if port and edge.kind in (EdgeKind.chosen, EdgeKind.failure):
        return edge.label or ("" if port == "out" else port)
    return edge_label(edge)


def edge_label(edge: Edge) -> str:
    """Its label, else its condition."""
    limit = f" (max {edge.loop})" if edge.loop else ""
    if edge.kind is EdgeKind.failure:
        return edge.label or "on failure"
    if edge.kind is EdgeKind.otherwise:
        return (edge.label or "otherwise") + limit
    return ((edge.label or edge.when or "") + limit).strip()
