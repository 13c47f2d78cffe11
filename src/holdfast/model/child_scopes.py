"""Scopes of maps, parallel nodes and sub-flows: their input, their result, and how one is removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast.errors import InputError, MissingNameError, NotComparableError
from holdfast.model.branches import branch_result
from holdfast.model.expressions import MISSING as EXPR_MISSING
from holdfast.model.expressions import Path, Resolve, compile_expr, walk
from holdfast.model.graph import Graph, MapSpec, Node, NodeKind
from holdfast.model.paths import resolver
from holdfast.model.position import Exec, Position, Scope, naps_of, new_scope
from holdfast.model.record_bodies import ErrorInfo
from holdfast.model.values import MISSING, Values
from holdfast.types.value import FrozenDict

PARENTS = frozenset({NodeKind.map, NodeKind.parallel, NodeKind.subflow})
# What follows a parent's visit in the paths of its children (see `child_path`).
PARENTS_END = ("[", "~")


class NotAListError(ValueError):
    """Turned into a failure of the map node by the engine."""


NO_INPUT = (NotAListError, MissingNameError, NotComparableError)
"""Why the children of a node cannot start."""


def child_inputs(
    graph: Graph, pos: Position, scope: Scope, execution: Exec, *, strict: bool = False
) -> list[Any]:
    """What the children of a map or sub-flow start from, read from the state as the node sees it. Raises one
    of NO_INPUT; for missing names only with `strict` or `Position.strict_names`."""
    node = graph.nodes[execution.node]
    resolve = resolver(scope.tree, execution.frame, records=pos.strict_names)
    strict = strict or pos.strict_names
    if node.map is not None:
        found = _value(node.map.over, resolve, strict=strict)
        if not isinstance(found, (list, tuple)):
            kind = "nothing" if found is None or found is EXPR_MISSING else type(found).__name__
            raise NotAListError(f"map node {node.id!r}: {node.map.over!r} is {kind}, not a list")
        if node.map.shares:
            scope.tree.expose(execution.frame)
        return list(found)  # type: ignore[arg-type]
    if node.parallel:
        scope.tree.expose(execution.frame)
        return list(range(len(node.parallel.starts)))
    assert node.subflow is not None
    scope.tree.expose(execution.frame)
    if node.subflow.inputs is None:
        return [FrozenDict(scope.tree.see(execution.frame, "scratch"))]
    given = {name: _value(text, resolve, strict=strict) for name, text in node.subflow.inputs.items()}
    return [FrozenDict({k: v for k, v in given.items() if v is not EXPR_MISSING})]


def _value(text: str, resolve: Resolve, *, strict: bool) -> object:
    expression = compile_expr(text)
    return expression.evaluate(resolve) if strict else expression.lenient(resolve)


def open_child(graph: Graph, pos: Position, parent: Scope, node: int, index: int) -> Scope:
    """A sub-flow, or one item of a map: a scope inside this one, with values of its own."""
    owner = pos.execs[(parent.path, node)]
    outer = pos.scope_graph(graph, parent)
    spec = outer.nodes[node]
    body = spec.body
    given = owner.items[index] if owner.items is not None else None
    name = f"{parent.graph}/{body}" if parent.graph else body
    values: Values = {"input": as_input(given), "scratch": {}, "artifacts": {}}
    if spec.parallel:
        # A separate copy is safe: the outer walk does not advance while its branches run.
        values["input"] = parent.tree.see(0, "input")
        values["scratch"].update(parent.tree.see(owner.frame, "scratch"))
    elif spec.map is not None and spec.map.item:
        values["input"] = parent.tree.see(0, "input")
        values["scratch"].update(_shared(parent, owner.frame, spec.map))
        values["scratch"][spec.map.item] = given
    else:
        values["scratch"].update(outer.subgraphs[body].spec.defaults)
        values["scratch"].update(values["input"])
    path = child_path(parent.path, spec.id, owner, index)
    child = pos.scopes[path] = new_scope(path, name, values, (parent.path, node), index)
    if spec.parallel and spec.parallel.edges:
        child.walk["came_by"] = spec.parallel.edges[index]
    owner.opened = max(owner.opened, index + 1)
    return child


def _shared(parent: Scope, frame: int, spec: MapSpec) -> dict[str, Any]:
    found = {name: parent.tree.read(frame, "scratch", name) for name in spec.shares or ()}
    return {name: value for name, value in found.items() if value is not MISSING}


def child_path(parent: str, node: str, owner: Exec, index: int) -> str:
    """Unique among all children that this run ever opens: ids of holds inside are derived from it (D-28)."""
    again = f"~{owner.failures}" if owner.failures else ""
    return f"{parent}{node}.{owner.visit}{again}[{index}]/"


def collects(node: Node, owner: Exec) -> bool:
    """Whether the next child that fails is one of the results."""
    if node.map is None:
        return bool(node.parallel)
    if node.map.tolerance is msgspec.UNSET:
        return node.map.on_item_failure == "collect"
    return not node.map.tolerance.is_exceeded(_failed_items(owner) + 1, len(owner.items or ()))


def _failed_items(owner: Exec) -> int:
    return sum(1 for result in owner.results.values() if "failed" in result)


def with_tolerance(node: Node, owner: Exec, error: ErrorInfo) -> ErrorInfo:
    """The error of an item that is one too many says so."""
    if node.map is None or node.map.tolerance is msgspec.UNSET:
        return error
    failed, items = _failed_items(owner) + 1, len(owner.items or ())
    why = f" ({node.map.tolerance.text(failed, items)})"
    if not node.map.tolerance.is_exceeded(failed, items) or error.message.endswith(why):
        return error
    return ErrorInfo(error.code, error.type, f"{error.message}{why}", error.detail)


def item_key(node: Node, item: Any, index: int) -> str:
    """What its map's expression gives over the item; without one, its index. Raises InputError."""
    spec = node.map
    if spec is None or spec.key is msgspec.UNSET:
        return str(index)

    def resolve(path: Path) -> object:
        first, *rest = path
        if first == "item":
            return walk(item, tuple(rest))
        return walk(cast("Any", item), path) if isinstance(item, Mapping) else EXPR_MISSING

    try:
        found = compile_expr(spec.key).evaluate(resolve)
    except (MissingNameError, NotComparableError) as wrong:
        raise InputError(f"map node {node.id!r}: the key of item {index}: {wrong.message}") from wrong
    if found is None or found is EXPR_MISSING:
        raise InputError(f"map node {node.id!r}: item {index} has no key: {spec.key!r} gives nothing.")
    return str(found)


def as_input(given: Any) -> FrozenDict:
    return given if isinstance(given, FrozenDict) else FrozenDict({"item": given})


def child_result(scope: Scope, names: Sequence[str] | None = None) -> Any:
    """A finished child as its owner sees it: its state, or only these names of it, and artifacts."""
    scope.tree.fill_all()
    values = scope.tree.values
    if names is not None:
        state = values.get("scratch", {})
        kept = FrozenDict({name: state[name] for name in names if name in state})
        return FrozenDict({"state": kept, "artifacts": FrozenDict({}), "output": None})
    return FrozenDict(
        {
            "state": FrozenDict(values.get("scratch", {})),
            "artifacts": FrozenDict(values.get("artifacts", {})),
            "output": values.get("aux", {}).get("output"),
        }
    )


def result_of(graph: Graph, pos: Position, scope: Scope, error: ErrorInfo | None = None) -> Any:
    """What the owner of a finished (or failed) child stores as its result."""
    assert scope.owner is not None
    owner = pos.execs[scope.owner]
    node = pos.scope_graph(graph, pos.scopes[owner.scope]).nodes[owner.node]
    if node.parallel:
        return branch_result(graph, pos, scope, node.parallel.starts[scope.index], error)
    if error is not None:
        return failed_item(error)
    gives = node.map.gives if node.map is not None else msgspec.UNSET
    return child_result(scope, None if gives is msgspec.UNSET else gives)


def failed_item(error: ErrorInfo) -> FrozenDict:
    """The entry in a map's results for an item that failed, if failures are collected."""
    return FrozenDict({"failed": error.message, "type": error.type})


def wipe_scope(graph: Graph, pos: Position, parent: Scope, node: int, index: int, _frame: int = 0) -> None:
    """Remove a failed child whose owner handles the failure, with everything inside it."""
    owner = pos.execs[(parent.path, node)]
    wipe_inside(pos, child_path(parent.path, graph.nodes[node].id, owner, index))


def wipe_inside(pos: Position, path: str, follows: tuple[str, ...] = ("",)) -> None:
    """Remove every scope whose path begins with `path`, with the executions and waits in it."""
    starts = tuple(path + end for end in follows)
    for path_inside in [p for p in pos.scopes if p.startswith(starts)]:
        del pos.scopes[path_inside]
    for key in [k for k in pos.execs if k[0].startswith(starts)]:
        gone = pos.execs.pop(key)
        for token in (gone.token, *naps_of(pos, gone)):
            pos.timers.pop(token, None)
    for hold in [h for h, waiting in pos.holds.items() if waiting.scope.startswith(starts)]:
        pos.timers.pop(pos.holds.pop(hold).token, None)
    for token in [
        t for t, (scope, _) in pos.timers.items() if t in pos.join_wakes and scope.startswith(starts)
    ]:
        del pos.timers[token], pos.join_wakes[token]
