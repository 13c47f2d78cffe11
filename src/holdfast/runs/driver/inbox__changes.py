"""Whether changed code matters to a run: only that of nodes which it may still come to (D-34)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from holdfast.model.graph import Graph
from holdfast.model.position import Position, Scope
from holdfast.runs.history.graph_match import ahead

if TYPE_CHECKING:
    from holdfast.model.program import Program
    from holdfast.store.protocols import Store

_BESIDE: Final = re.compile(r":(probe|router\d+)$")
_REDUCER: Final = "reducer:"


async def changed_ahead(store: Store, program: Program, pos: Position, old: str) -> list[str] | None:
    """The nodes ahead whose code is not what it was under the digest `old`; reducers are told by their field.
    None where nobody knows any more what that code consisted of."""
    kept = await store.code(old)
    if kept is None:
        return None
    changed = program.changed_parts(msgspec.json.decode(kept, type=dict[str, str]))
    names = {_BESIDE.sub("", part) for part in changed}
    coming = set(_coming(program, pos)) if names else set[str]()
    return sorted(name for name in names if name in coming or _is_reducer(name))


def _is_reducer(name: str) -> bool:
    return name.rpartition("/")[2].startswith(_REDUCER)


def _coming(program: Program, pos: Position) -> Iterator[str]:
    """Named as the parts of a program's code are: `pay`, `child/pay`."""
    for scope in pos.scopes.values():
        inner = program.at(scope.graph)
        yield from _named(inner, _nodes_ahead(inner.graph, pos, scope), scope.graph)


def _nodes_ahead(graph: Graph, pos: Position, scope: Scope) -> set[int]:
    live = {e.node for e in pos.execs.values() if e.scope == scope.path}
    live |= {graph.target[e] for e in scope.tokens} | {*scope.waiting, *scope.early}
    for header in scope.open_loops:
        live |= graph.loops[header].body
    return ahead(graph, (node for node in live if node >= 0))


def _named(program: Program, nodes: Iterable[int], path: str) -> Iterator[str]:
    before = f"{path}/" if path else ""
    for i in nodes:
        node = program.graph.nodes[i]
        yield before + node.id
        body = node.body
        if body:
            child = program.children[body]
            yield from _named(child, range(len(child.graph.nodes)), before + body)
