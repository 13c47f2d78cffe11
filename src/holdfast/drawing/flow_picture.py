"""A flow's graph as a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from holdfast.drawing.picture import EdgeStyle, Highlight, NodeShape, Picture, PictureEdge, PictureNode, State
from holdfast.model.graph import END, START, Edge, EdgeKind, Graph, Node, NodeKind

_SHAPES = {
    NodeKind.hold: NodeShape.hold,
    NodeKind.timer: NodeShape.timer,
    NodeKind.map: NodeShape.map,
    NodeKind.parallel: NodeShape.map,
    NodeKind.subflow: NodeShape.subflow,
    NodeKind.guardrail: NodeShape.guard,
}


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
    expand: bool = False,
    mark: Marking | None = None,
    path: str = "",
) -> Picture:
    """`shown` is by node; a node of a sub-flow is named with its path: `child/pay`. `mark` returns the mark
    of an edge, given its graph's path. `expand` also draws the inside of maps and sub-flows."""
    known = shown or {}
    nodes = [_node(graph, node, known, expand=expand, mark=mark, path=path) for node in graph.nodes]
    edges = [_edge(edge, mark(path, edge) if mark else Highlight.none) for edge in graph.edges]
    began = mark is not None and any(path + name in known for name in graph.spec.start)
    first = [_dot(START, NodeShape.start)] if graph.spec.start else []
    last = [_dot(END, NodeShape.end)] if any(edge.target == END for edge in graph.edges) else []
    starts = [
        PictureEdge(source=START, target=name, mark=Highlight.taken if began else Highlight.none)
        for name in graph.spec.start
    ]
    return Picture(nodes=(*first, *nodes, *last), edges=(*starts, *edges), title=graph.name)


def _dot(name: str, shape: NodeShape) -> PictureNode:
    return PictureNode(id=name, label="", shape=shape)


def _node(
    graph: Graph,
    node: Node,
    known: Mapping[str, NodeOverlay],
    *,
    expand: bool,
    mark: Marking | None,
    path: str,
) -> PictureNode:
    about = known.get(path + node.id, NodeOverlay())
    body = node.body
    inner = graph.subgraphs.get(body) if expand and body else None
    inside = None
    if inner is not None:
        inside = from_graph(inner, known, expand=True, mark=mark, path=f"{path}{node.id}/")
    return PictureNode(
        id=node.id,
        label=node.id,
        shape=_SHAPES.get(node.kind, NodeShape.task),
        state=about.state,
        mark=about.mark,
        note=about.note,
        detail=about.detail or describe(node),
        inside=inside,
    )


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


def _edge(edge: Edge, mark: Highlight) -> PictureEdge:
    return PictureEdge(
        source=edge.source, target=edge.target, label=edge_label(edge), look=_edge_style(edge), mark=mark
    )


def _edge_style(edge: Edge) -> EdgeStyle:
    if edge.loop is not None:
        return EdgeStyle.loop
    if edge.kind is EdgeKind.failure:
        return EdgeStyle.failure
    return EdgeStyle.plain if edge.kind is EdgeKind.always else EdgeStyle.conditional


def edge_label(edge: Edge) -> str:
    """Its label, else its condition."""
    limit = f" (max {edge.loop})" if edge.loop else ""
    if edge.kind is EdgeKind.failure:
        return edge.label or "on failure"
    if edge.kind is EdgeKind.otherwise:
        return (edge.label or "otherwise") + limit
    return ((edge.label or edge.when or "") + limit).strip()
