"""The names of nodes inside maps, sub-flows and branches as people read them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from holdfast.model.fingerprint import PIPELINES, dialect_of
from holdfast.model.graph import Graph, Node, NodeKind

# A part of a stored label: node, visit, how often its node had failed before, item.
_PART: Final = re.compile(r"(.+)\.(\d+)(?:~\d+)?\[(\d+)\]")


def shown_name(label: str, graph: Graph | None = None) -> str:
    """`each[110]` for `each.1[110]/fetch`, `pay/charge` for `pay.1[0]/charge`.

    The graph shows that `each` is a map over a function and `pay` a sub-flow. Without it, and for a name that
    it does not have (an older version had it), these are `each[110]/fetch` and `pay[0]/charge`. Only later
    visits are numbered: `each.2[110]`.
    """
    *around, node = label.split("/")
    shown: list[str] = []
    owner: Node | None = None
    for part in around:
        found = _PART.fullmatch(part)
        if found is None:
            return label
        name, visit, item = found.groups()
        owner = graph.nodes[graph.index[name]] if graph is not None and name in graph.index else None
        graph = graph.subgraphs.get(owner.body) if graph is not None and owner is not None else None
        numbered = owner is None or owner.kind is not NodeKind.subflow
        shown.append(name + ("" if visit == "1" else f".{visit}") + (f"[{item}]" if numbered else ""))
    if owner is None or graph is None or not _is_item(owner, graph, node):
        shown.append(node)
    return "/".join(shown)


def _is_item(owner: Node, body: Graph, node: str) -> bool:
    """The body of a map over a function is made for the map, with that function as its one node."""
    return body.name == f"{owner.id}.item" and [each.id for each in body.nodes] == [node]


def without_internals(version: str, values: Any) -> Any:
    """The values as people read them: without those that pipelines keep for themselves (`internal.*`)."""
    if dialect_of(version) != PIPELINES or not isinstance(values, Mapping):
        return values
    kept = cast("Mapping[str, Any]", values)
    return {key: value for key, value in kept.items() if not key.startswith("internal.")}
