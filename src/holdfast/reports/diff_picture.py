"""A comparison as a picture: the graphs of both sides laid over each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from holdfast.checkpoint.diff_result import Diff, NodeDiff
from holdfast.checkpoint.visit import place_of
from holdfast.drawing import Highlight, NodeOverlay, Picture, PictureEdge, from_graph
from holdfast.model.graph import Edge, Graph
from holdfast.runs.history.versions import reader_at

if TYPE_CHECKING:
    from holdfast.runs.service import RunService

_MARKS = {"added": Highlight.added, "removed": Highlight.removed, "changed": Highlight.changed}
_RANK = {Highlight.changed: 3, Highlight.removed: 2, Highlight.added: 1, Highlight.none: 0}


async def diff_picture(service: RunService, diff: Diff, *, expand: bool = True) -> Picture:
    """Nodes and edges by their change from A to B: added, removed, changed, or unchanged."""
    before = (await reader_at(service, await service.get(diff.a.run), diff.a.seq)).graph
    after = (await reader_at(service, await service.get(diff.b.run), diff.b.seq)).graph
    return overlay(before, after, diff, expand=expand)


def overlay(before: Graph, after: Graph, diff: Diff, *, expand: bool = True) -> Picture:
    result = _node_overlays(diff)
    gone, new = ({place_of(edge) for edge in side} for side in diff.edges)

    def mark(path: str, edge: Edge) -> Highlight:
        place = path + edge.id
        if place in gone and place in new:
            return Highlight.changed
        return Highlight.removed if place in gone else Highlight.added if place in new else Highlight.none

    drawn = from_graph(after, result, expand=expand, mark=mark)
    title = f"{after.name}: {diff.a.run[:8]}@{diff.a.seq} to {diff.b.run[:8]}@{diff.b.seq}"
    if before.spec != after.spec:
        drawn = _with_removed(drawn, from_graph(before, result, expand=expand, mark=mark))
    return msgspec.structs.replace(drawn, title=title)


def _node_overlays(diff: Diff) -> dict[str, NodeOverlay]:
    """By the node's place in the graph, for any visit or item."""
    found: dict[str, NodeOverlay] = {}
    for node in diff.nodes:
        path = place_of(node.node)
        known, mark = found.get(path, NodeOverlay()).mark, _MARKS[node.kind]
        both = known is not Highlight.none and known is not mark
        kept = Highlight.changed if both else max(known, mark, key=lambda m: _RANK[m])
        found[path] = NodeOverlay(mark=kept, note=_note(node), detail=_detail(node))
    return found


def _note(node: NodeDiff) -> str:
    before, after = node.outcome
    if node.kind == "changed" and before != after:
        return f"{before} → {after}"
    return f"{after or before}{f', visit {node.visit}' if node.visit > 1 else ''}"


def _detail(node: NodeDiff) -> str:
    return "; ".join(f"{change.kind} {change.path}" for change in node.all[:6])


def _with_removed(after: Picture, before: Picture) -> Picture:
    """What only the older version has is drawn too."""
    known = {node.id for node in after.nodes}
    lines = {(edge.source, edge.target, edge.label) for edge in after.edges}
    old = {(edge.source, edge.target, edge.label) for edge in before.edges}
    nodes = [
        msgspec.structs.replace(node, mark=Highlight.removed, note="gone")
        for node in before.nodes
        if node.id not in known
    ]
    lost = [
        msgspec.structs.replace(edge, mark=Highlight.removed)
        for edge in before.edges
        if (edge.source, edge.target, edge.label) not in lines
    ]
    fresh = {node.id for node in after.nodes} - {node.id for node in before.nodes}
    kept = [
        msgspec.structs.replace(node, mark=Highlight.added) if node.id in fresh else node
        for node in after.nodes
    ]
    return Picture(
        nodes=(*kept, *nodes), edges=(*(_newer(edge, old) for edge in after.edges), *lost), title=after.title
    )


def _newer(edge: PictureEdge, old: set[tuple[str, str, str]]) -> PictureEdge:
    fresh = (edge.source, edge.target, edge.label) not in old
    return msgspec.structs.replace(edge, mark=Highlight.added) if fresh else edge
