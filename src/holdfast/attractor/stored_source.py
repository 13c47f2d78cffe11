"""The source document of a stored graph, and the stages that several branches share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from holdfast.errors import VersionMismatchError
from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import DIALECT
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import REQUIRES
from holdfast.model.graph import GraphSpec


def pipeline_of(spec: GraphSpec) -> Pipeline:
    """The document of a stored graph. Raises VersionMismatchError if it is not a pipeline."""
    document: Any = spec.document if isinstance(spec.document, dict) else {}
    if document.get("dialect") != DIALECT:
        raise VersionMismatchError(
            f"flow {spec.name!r} was not made from a pipeline.", hint="Load the code of its version."
        )
    return pipeline_of_document(document)


def pipeline_of_document(document: dict[str, Any]) -> Pipeline:
    """Of what `document_of` made."""
    files: dict[str, Any] = document.get("files") or {}
    return _pipeline(document, files, submitted=bool(document.get("submitted")))


def _pipeline(stored: dict[str, Any], files: dict[str, Any], *, submitted: bool) -> Pipeline:
    requires = stored.get(REQUIRES)
    return msgspec.structs.replace(
        parse(str(stored["source"])).pipeline,
        submitted=submitted,
        requires=None if requires is None else frozenset(requires),
        children=_StoredChildren(stored.get("children") or {}, files, submitted=submitted),
    )


class _StoredChildren(Mapping[str, Pipeline]):
    """Parsed when they are used: most readers of a graph never look at them."""

    def __init__(self, names: dict[str, str], files: dict[str, Any], *, submitted: bool) -> None:
        self._names = names
        self._files = files
        self._submitted = submitted
        self._parsed: dict[str, Pipeline] = {}

    def __getitem__(self, name: str) -> Pipeline:
        found = self._parsed.get(name)
        if found is None:
            stored = self._files.get(self._names[name])
            if stored is None:
                raise VersionMismatchError(
                    f"the stored graph does not have the text of its child pipeline {name}.",
                    hint="Create the run again from its files.",
                )
            found = self._parsed[name] = _pipeline(stored, self._files, submitted=self._submitted)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


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
