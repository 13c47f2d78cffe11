"""The part of a position that one execution sees: what its activity is given."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.model.budget_ledger import budget_question
from holdfast.model.frames import FrameTree
from holdfast.model.position import Exec, Position, Scope
from holdfast.model.values import Values

_PARTITIONS = ("input", "scratch", "artifacts", "aux")


def exec_view(pos: Position, execution: Exec, *, apart: bool = False, bare: bool = False) -> Position:
    """A position of its own, in which the execution is in the root frame of its scope. Nothing in it may be
    changed: values are shared with the run's position. `apart`: inside maps and the like without the input of
    the run; with `bare` also where that is the input of the item."""
    scope = pos.scopes[execution.scope]
    view = msgspec.structs.replace(
        pos, scopes={}, execs={}, holds={}, timers={}, join_wakes={}, breaks=[], cancel_rows=[]
    )
    seen: Values = {name: dict(scope.tree.see(execution.frame, name)) for name in _PARTITIONS}
    view.scopes[scope.path] = _scope(scope, seen)
    root = pos.scopes[""]
    if scope.path:
        names = ("artifacts",) if apart else ("input", "artifacts")
        if bare and seen["input"] == root.tree.see(0, "input"):
            del seen["input"]
        view.scopes[""] = _scope(root, {name: dict(root.tree.see(0, name)) for name in names})
    view.execs[execution.scope, execution.node] = msgspec.structs.replace(
        execution, frame=0, items=None, results={}
    )
    if scope.owner is not None:
        _add_owner(pos, view, scope)
    mine = (execution.scope, execution.node)
    view.holds = {hold: each for hold, each in pos.holds.items() if (each.scope, each.node) == mine}
    view.timers = {token: place for token, place in pos.timers.items() if place == mine}
    return view


def _scope(scope: Scope, values: Values) -> Scope:
    return msgspec.structs.replace(
        scope, tree=FrameTree.rooted(values), tokens={}, waiting={}, visits={}, open_loops={}
    )


def _add_owner(pos: Position, view: Position, scope: Scope) -> None:
    """Of an item of a map: the map, with this item alone."""
    owner = pos.execs[scope.owner] if scope.owner is not None else None
    if owner is None:
        return
    items: list[Any] | None = None
    if owner.items is not None:
        items = [None] * scope.index + [owner.items[scope.index]]
    view.execs[owner.scope, owner.node] = msgspec.structs.replace(
        owner, frame=0, items=items, results={}, subs={}
    )
    if owner.scope not in view.scopes:
        view.scopes[owner.scope] = _scope(pos.scopes[owner.scope], {})


def add_budget_view(pos: Position, view: Position) -> None:
    """What counts against the budget of the run: what other executions spent and ask about it."""
    for place, execution in pos.execs.items():
        if place not in view.execs:
            asked = {key: sub for key, sub in execution.subs.items() if budget_question(key)}
            view.execs[place] = msgspec.structs.replace(
                execution, frame=0, items=None, results={}, subs=asked
            )
            view.scopes.setdefault(place[0], _scope(pos.scopes[place[0]], {}))


def fit_view(pos: Position, execution: Exec) -> Position:
    """The same for fitting values: with the items that a map or sub-flow passes on."""
    view = exec_view(pos, execution)
    view.execs[execution.scope, execution.node].items = execution.items
    return view
