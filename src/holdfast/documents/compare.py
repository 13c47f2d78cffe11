"""What differs between two documents: nodes by id, edges by name, settings; layout apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.checkpoint.value_diff import Change, changes
from holdfast.frontends.document.canonical import meaning_of
from holdfast.frontends.document.document import FlowDocument, Json
from holdfast.frontends.document.layout import layout_of


class PartDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A node or an edge. `change`: added, removed or changed; `before` and `after`: the whole of it, without
    layout; `changes`: where it was changed."""

    id: str
    change: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changes: list[Change] = []


class DocumentDiff(msgspec.Struct, frozen=True, kw_only=True):
    """`same`: both mean the same, and are one version. `reordered`: the nodes stand in another order.
    `settings`: every other key."""

    same: bool
    nodes: list[PartDiff]
    edges: list[PartDiff]
    settings: list[Change]
    layout: list[Change]
    reordered: bool = False


def compare_documents(before: FlowDocument, after: FlowDocument) -> DocumentDiff:
    one, other = meaning_of(before), meaning_of(after)
    nodes = [{each["id"]: each for each in side["nodes"]} for side in (one, other)]
    names = [[edge.name for edge in document.edges] for document in (before, after)]
    edges = [dict(zip(names[at], side["edges"], strict=True)) for at, side in enumerate((one, other))]
    settings = [
        {key: value for key, value in side.items() if key not in ("nodes", "edges")} for side in (one, other)
    ]
    both = nodes[0].keys() & nodes[1].keys()
    orders = [[name for name in side if name in both] for side in nodes]
    return DocumentDiff(
        same=one == other,
        nodes=_parts(nodes[0], nodes[1]),
        edges=_parts(edges[0], edges[1]),
        settings=list(changes(settings[0], settings[1])),
        layout=list(changes(layout_of(before), layout_of(after))),
        reordered=orders[0] != orders[1],
    )


def _parts(before: Mapping[str, Json], after: Mapping[str, Json]) -> list[PartDiff]:
    found: list[PartDiff] = []
    for name in dict.fromkeys([*before, *after]):
        one, other = before.get(name), after.get(name)
        inner = [] if one is None or other is None else list(changes(one, other))
        if inner or one is None or other is None:
            kind = "added" if one is None else "removed" if other is None else "changed"
            found.append(PartDiff(id=name, change=kind, before=one, after=other, changes=inner))
    return found
