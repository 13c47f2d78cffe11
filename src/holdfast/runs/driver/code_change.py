"""Has the code of a run changed since it was loaded last? It matters only for nodes that the run may still
reach (D-34), and for substeps that were recorded by other code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from holdfast.errors import VersionMismatchError
from holdfast.model.graph import Graph
from holdfast.model.position import Position, Scope
from holdfast.model.program import Program
from holdfast.runs.driver.session import RunSession
from holdfast.runs.history.graph_match import ahead
from holdfast.store.protocols import Store

_BESIDE: Final = re.compile(r":(probe|router\d+)$")
_REDUCER: Final = "reducer:"


async def changed_ahead(store: Store, program: Program, pos: Position, old: str) -> list[str] | None:
    """The nodes ahead whose code differs from the code with digest `old`; reducers are named by their field.
    None if the store no longer has the parts of that code."""
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
    """Named like the parts of a program's code: `pay`, `child/pay`."""
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


def require_same_substeps(session: RunSession) -> None:
    """Changed code may not continue during a visit: the recorded sub-steps are those of the old
    code (D-34)."""
    for execution in session.pos.execs.values():
        program = session.program_of(execution)
        node = program.graph.nodes[execution.node].id
        if execution.code and not program.accepts_code(node, execution.code):
            raise VersionMismatchError(
                f"the code of node {node!r} has changed, and visit {execution.visit} of it has "
                "recorded sub-steps or answers that the old code made.",
                hint="Load the old code; or, if the new code takes the same steps, declare that on the node: "
                f"compatible_with={execution.code!r}.",
                flow=session.graph.name,
                node=node,
            )
