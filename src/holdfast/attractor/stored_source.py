"""The source document of a stored graph, and the stages that several branches share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from holdfast.errors import VersionMismatchError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import DIALECT
from holdfast.frontends.dot.parse import parse
from holdfast.model.graph import GraphSpec


def pipeline_of(spec: GraphSpec) -> Pipeline:
    """The document of a stored graph. Raises VersionMismatchError if it is not a pipeline."""
    document: Any = spec.document if isinstance(spec.document, dict) else {}
    if document.get("dialect") != DIALECT:
        raise VersionMismatchError(
            f"flow {spec.name!r} was not made from a pipeline.", hint="Load the code of its version."
        )
    found = parse(str(document["source"])).pipeline
    return msgspec.structs.replace(found, submitted=True) if document.get("submitted") else found


def shared_stages(spec: GraphSpec) -> frozenset[str]:
    """Stages that more than one branch of a parallel stage contains."""
    bodies = {inner.name: inner for inner in spec.subgraphs}
    found: set[str] = set()
    for node in spec.nodes:
        if node.parallel and node.body in bodies:
            seen: set[str] = set()
            for way in _ways(bodies[node.body], node.parallel.starts):
                found |= seen & way
                seen |= way
    return frozenset(found.union(*map(shared_stages, spec.subgraphs)))


def _ways(spec: GraphSpec, starts: Iterable[str]) -> Iterator[set[str]]:
    """The stages that each branch reaches, with those inside nested parallel stages."""
    after: dict[str, list[str]] = {}
    for edge in spec.edges:
        after.setdefault(edge.source, []).append(edge.target)
    inside = {inner.name: _stages(inner) for inner in spec.subgraphs}
    for start in starts:
        seen, todo = set[str](), [start]
        while todo:
            each = todo.pop()
            if each not in seen:
                seen |= {each, *inside.get(each, ())}
                todo += after.get(each, [])
        yield seen


def _stages(spec: GraphSpec) -> set[str]:
    return {node.id for node in spec.nodes}.union(*map(_stages, spec.subgraphs))
