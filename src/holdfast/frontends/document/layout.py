"""The layout of a document: where its nodes are drawn and what its parts are called. It never changes what
the document does, so it can change without a new version."""

from __future__ import annotations

from typing import Any, Final, cast

from holdfast.frontends.document.document import FlowDocument, Json

TOP: Final = ("label", "notes", "groups", "ui")
NODE: Final = ("label", "position", "ui")
EDGE: Final = ("label", "ui")


def layout_of(document: FlowDocument) -> Json:
    """`nodes` by id and `edges` by name have only parts that have a layout."""
    found = _chosen(document.data, TOP)
    nodes = {
        node.id: _chosen(_at(document, path), NODE)
        for node, path in zip(document.nodes, document.node_paths, strict=True)
    }
    edges = {
        edge.name: _chosen(_at(document, path), EDGE)
        for edge, path in zip(document.edges, document.edge_paths, strict=True)
    }
    found["nodes"] = {name: each for name, each in nodes.items() if each}
    found["edges"] = {name: each for name, each in edges.items() if each}
    return found


def with_layout(document: FlowDocument, layout: Json) -> Json:
    """The data of the document with another layout. Keys that stay keep their place."""
    found = _replaced(document.data, layout, TOP)
    nodes, edges = layout.get("nodes", {}), layout.get("edges", {})
    parts = {
        path: _replaced(_at(document, path), nodes.get(node.id, {}), NODE)
        for node, path in zip(document.nodes, document.node_paths, strict=True)
    } | {
        path: _replaced(_at(document, path), edges.get(edge.name, {}), EDGE)
        for edge, path in zip(document.edges, document.edge_paths, strict=True)
    }
    for key in ("nodes", "edges"):
        if found.get(key):
            found[key] = [parts[key, at] for at in range(len(found[key]))]
    return found


def _at(document: FlowDocument, path: tuple[Any, ...]) -> Json:
    return cast("Json", document.data[path[0]][path[1]])


def _chosen(data: Json, keys: tuple[str, ...]) -> Json:
    return {key: data[key] for key in keys if data.get(key) is not None}


def _replaced(data: Json, given: Json, keys: tuple[str, ...]) -> Json:
    kept = {
        key: given[key] if key in keys else value
        for key, value in data.items()
        if key not in keys or given.get(key) is not None
    }
    return {**kept, **_chosen(given, tuple(key for key in keys if key not in kept))}
