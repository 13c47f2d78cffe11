"""Why a run cannot continue in another version from its present position: each reason in plain words."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast.model.forms.compile import primary_options
from holdfast.model.graph import Graph, Node
from holdfast.model.position import Exec, Position, Scope
from holdfast.runs.history.graph_match import Match, ahead
from holdfast.types.status import REPEATABLE

_WAIT = "let such runs end on their own version"


class MigrationBlocker(msgspec.Struct, frozen=True):
    """`node`: with its scope, "" for the run as a whole. `fix`: what to do about it. `soft`:
    `force` migrates the run in spite of it."""

    node: str
    why: str
    fix: str
    soft: bool = False


def blockers_in(pos: Position, scope: Scope, matched: Match) -> list[MigrationBlocker]:
    """Everything in this scope that has no place in the new graph."""
    live = [e for e in pos.execs.values() if e.scope == scope.path]
    found = [misfit for e in live for misfit in _of_execution(pos, scope, matched, e)]
    found += _of_joins(scope, matched)
    found += _of_loops(scope, matched)
    if not found and not matched.graph.walk:
        found += _of_what_comes(scope, matched, live)
    return found


# ---------------------------------------------------------------------- where it stands


def _of_execution(pos: Position, scope: Scope, matched: Match, execution: Exec) -> Iterator[MigrationBlocker]:
    node = matched.old.nodes[execution.node]
    label = scope.path + node.id
    holds = [w for w in pos.holds.values() if (w.scope, w.node) == (execution.scope, execution.node)]
    if execution.node not in matched.nodes:
        asks = ", where a person is asked" if holds else ""
        yield MigrationBlocker(
            label, f"it is at node {label!r}{asks}, and NEW has no such node", _rename(matched, execution)
        )
        return
    new = matched.graph.nodes[matched.nodes[execution.node]]
    if new.kind is not node.kind:
        yield MigrationBlocker(
            label, f"it is at node {label!r}, a {node.kind} that is a {new.kind} in NEW", _WAIT
        )
    if execution.intent >= 0 and new.effect in REPEATABLE and node.effect not in REPEATABLE:
        yield MigrationBlocker(
            label,
            f"an effect of node {label!r} is in progress, and is {new.effect} in NEW: it could happen twice",
            "keep its effect class until such runs are past it",
            soft=True,
        )
    if execution.intent >= 0 and new.idempotency_key != node.idempotency_key:
        yield MigrationBlocker(
            label,
            f"the effect of node {label!r} is in progress, and NEW gives it another idempotency key",
            "keep its key until such runs are past it",
            soft=True,
        )
    for wait in holds:
        yield from _of_expiry(matched, label, wait.on_timeout or "")
        if wait.why == "node":
            yield from _of_options(node, new, label)
    yield from _of_code(matched, execution, label, new.id)


def _rename(matched: Match, execution: Exec) -> str:
    name = matched.old.nodes[execution.node].id
    near = matched.nearest(execution.node)
    if near:
        return f'if it is called {near!r} now: migrate(..., rename={{"{name}": "{near}"}})'
    return _WAIT


def _of_expiry(matched: Match, label: str, action: str) -> Iterator[MigrationBlocker]:
    if action.startswith("branch:") and matched.old.index.get(action[7:]) not in matched.nodes:
        yield MigrationBlocker(
            label,
            f"the hold at {label!r} leads to {action[7:]!r} when it expires, which NEW lacks",
            _WAIT,
        )


def _of_options(node: Node, new: Node, label: str) -> Iterator[MigrationBlocker]:
    """The question stays as it was asked, and NEW's edges would decide by an answer that they do not know:
    one that means no could lead to `otherwise`."""
    before, after = option_ids(node), option_ids(new)
    if before is None and after is None:
        return
    lacking = [repr(each) for each in before or () if each not in (after or ())]
    if lacking or before is None:
        offered = "a free answer" if before is None else ", ".join(lacking)
        yield MigrationBlocker(
            label,
            f"the open question at {label!r} offers {offered}, which NEW does not",
            "let it be answered and applied on its own version first, or keep the ids of its options",
        )


def option_ids(node: Node) -> tuple[str, ...] | None:
    """Of a hold; None if it takes any answer."""
    hold = node.hold
    if hold is None:
        return None
    chosen = (primary_options(hold.form) if hold.form else None) or hold.options
    return None if chosen is None else tuple(option.id for option in chosen)


def _of_code(matched: Match, execution: Exec, label: str, name: str) -> Iterator[MigrationBlocker]:
    """Sub-steps that other code made (D-34)."""
    if execution.code and not matched.new.accepts_code(name, execution.code):
        yield MigrationBlocker(
            label,
            f"visit {execution.visit} of node {label!r} has sub-steps that other code made",
            f'if the new code takes the same steps: compatible_with="{execution.code}" on the node',
            soft=True,
        )


# ---------------------------------------------------------------------- what is half decided


def _of_joins(scope: Scope, matched: Match) -> Iterator[MigrationBlocker]:
    """Branches wait at a join: what it still waits for is stored as a number, so its edges must be
    the same."""
    old, new = matched.old, matched.graph
    for edge in scope.tokens:
        if edge not in matched.edges:
            way = f"{old.edges[edge].source!r} to {old.edges[edge].target!r}"
            yield MigrationBlocker(
                scope.path + old.edges[edge].target,
                f"a branch is on its way from {way}, and NEW has no such edge",
                _WAIT,
            )
    for node in dict.fromkeys([*scope.waiting, *scope.arrived, *scope.early]):
        name = old.nodes[node].id
        label = scope.path + name
        if node not in matched.nodes:
            yield MigrationBlocker(
                label, f"branches come together at node {label!r}, and NEW has no such node", _WAIT
            )
            continue
        there = matched.nodes[node]
        if {matched.edges.get(e, -1) for e in old.into[node]} != set(new.into[there]):
            yield MigrationBlocker(
                label, f"branches come together at node {label!r}, and other edges lead there in NEW", _WAIT
            )
        elif old.nodes[node].join != new.nodes[there].join:
            yield MigrationBlocker(
                label, f"branches come together at node {label!r}, which joins them differently in NEW", _WAIT
            )


def _of_loops(scope: Scope, matched: Match) -> Iterator[MigrationBlocker]:
    for header, state in scope.open_loops.items():
        name = scope.path + matched.old.nodes[header].id
        used = {*state.decided, *state.fired, *state.dead_exits, *state.held}
        if header not in matched.nodes or not used <= matched.edges.keys():
            yield MigrationBlocker(name, f"it is inside the loop at {name!r}, which NEW does not have", _WAIT)
        elif not _same_loop(matched, header):
            yield MigrationBlocker(
                name, f"it is inside the loop at {name!r}, whose edges back or out differ in NEW", _WAIT
            )


def _same_loop(matched: Match, header: int) -> bool:
    old, new = matched.old.loops[header], matched.graph.loops.get(matched.nodes[header])
    if new is None:
        return False
    return {matched.edges.get(e) for e in old.edges} == set(new.edges) and {
        matched.edges.get(e) for e in old.exits
    } == set(new.exits)


# ---------------------------------------------------------------------- what is still to come


def _of_what_comes(scope: Scope, matched: Match, live: list[Exec]) -> Iterator[MigrationBlocker]:
    """A node ahead that waits for one which the run has passed would wait for ever."""
    graph = matched.graph
    here = {matched.nodes[e.node] for e in live}
    arriving = {graph.target[matched.edges[e]] for e in scope.tokens}
    waiting = {matched.nodes[n] for n in (*scope.waiting, *scope.early)}
    coming = ahead(graph, here | arriving | waiting)
    # What a loop that may still turn has decided about its exits counts when it ends.
    deciding = coming.union(*(graph.loops[matched.nodes[h]].body for h in scope.open_loops))
    for node in sorted(coming - here - waiting):
        for source in _passed(graph, node, deciding):
            label = scope.path + graph.nodes[node].id
            yield MigrationBlocker(
                label,
                f"node {label!r} waits for {graph.nodes[source].id!r} in NEW, which is not ahead of this run",
                _WAIT,
            )


def _passed(graph: Graph, node: int, deciding: set[int]) -> list[int]:
    sources = {graph.source[e] for e in graph.into[node]}
    return sorted(sources - deciding) if graph.indegree[node] > 1 else []
