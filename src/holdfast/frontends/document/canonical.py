"""The meaning of a document: what is left without its layout. Its digest is part of the flow's version."""

from __future__ import annotations

from typing import Any, Final, cast

from holdfast.frontends.document.document import FlowDocument, FlowEdge, FlowNode, Json

_LAYOUT: Final = frozenset({"label", "notes", "groups", "ui", "nodes", "edges"})
_NODE_LAYOUT: Final = frozenset({"label", "position", "ui"})


def meaning_of(document: FlowDocument) -> Json:
    """Equal for documents that mean the same, whatever their format, layout and order of keys. Keys that say
    what would hold without them are left out; null is absent."""
    found = {key: value for key, value in document.data.items() if key not in _LAYOUT and value is not None}
    found["nodes"] = [_node(each, document.data["nodes"][path[1]]) for each, path in _placed(document)]
    found["edges"] = [_edge(each) for each in document.edges]
    return found


def _placed(document: FlowDocument) -> list[tuple[FlowNode, Any]]:
    return list(zip(document.nodes, document.node_paths, strict=True))


def _node(node: FlowNode, data: Json) -> Json:
    found = {key: value for key, value in data.items() if key not in _NODE_LAYOUT and value is not None}
    if not node.disabled:
        found.pop("disabled", None)
    config = {key: value for key, value in node.config.items() if value is not None}
    found.pop("config", None)
    return {**found, "config": config} if config else found


def _edge(edge: FlowEdge) -> Json:
    found: Json = {"source": edge.source, "target": edge.target}
    if edge.port != "out":
        found["source_port"] = edge.port
    if edge.id is not None and edge.id != f"{edge.source}:{edge.port}->{edge.target}":
        found["id"] = edge.id
    if edge.when is not None:
        found["when"] = edge.when
    return {**found, "otherwise": True} if edge.otherwise else found


def source_of(document: Any) -> Json:
    """The meaning that a stored graph carries."""
    return cast("Json", document["source"])
