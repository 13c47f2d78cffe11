"""What a person reads who is asked whether an effect happened: exactly which one.

Only in the row of the hold: the journal has the place as scope, node and visit of its record, and the
journals of earlier runs are compared with what the engine decides today.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.engine.decision import Decision, node_of
from holdfast.errors import InputError
from holdfast.model.branch_ordinals import shown_call
from holdfast.model.child_scopes import item_key
from holdfast.model.expressions import compile_expr
from holdfast.model.graph import MapSpec
from holdfast.model.paths import resolver
from holdfast.model.position import Exec
from holdfast.model.secrets import ANY, Paths, hide_at
from holdfast.model.shown_names import shown_name
from holdfast.model.template_text import as_text
from holdfast.types.ids import EFFECT_FLOW
from holdfast.types.text import one_line

MAX_ITEM: Final = 200
"""Characters of an item in a question."""


def what_happened(decision: Decision, execution: Exec, substep: str) -> tuple[str, dict[str, Any]]:
    """The effect as a question names it, and the facts that tell it from others of the same node."""
    node = node_of(decision.graph, decision.pos, execution)
    place = shown_name(execution.scope + node.id, decision.graph)
    again = f" (visit {execution.visit})" if execution.visit > 1 else ""
    facts: dict[str, Any] = {"place": place}
    text = _recorded_effect(decision, execution, facts) or f"node {place!r}{again}"
    if substep:
        facts["call"] = shown_call(substep)
        step = execution.step_names.get(substep, substep)
        text = f"step {step!r} ({facts['call']}) of {text}"
    items = list(_items(decision, execution))
    if items:
        facts |= items[0]
        # Of maps inside maps: the innermost item first.
        shown = "; ".join(_shown(each) for each in items)
        text += f" ({'item' if len(items) == 1 else 'items'} {shown})"
    return text, facts


def _recorded_effect(decision: Decision, execution: Exec, facts: dict[str, Any]) -> str:
    """Of a function that is recorded without a flow (`@hf.effect`): its name and key."""
    name = decision.graph.name
    if not name.startswith(EFFECT_FLOW):
        return ""
    tree = decision.pos.scopes[execution.scope].tree
    facts["key"] = as_text(resolver(tree, execution.frame)(("key",)))
    return f"effect {name.removeprefix(EFFECT_FLOW)!r} with the key {facts['key']!r}"


def _shown(item: dict[str, Any]) -> str:
    value = one_line(as_text(item["item"]), MAX_ITEM)
    return f"{one_line(item['key'], MAX_ITEM)}: {value}" if "key" in item else value


def _items(decision: Decision, execution: Exec) -> Iterator[dict[str, Any]]:
    """Of the maps around it."""
    pos = decision.pos
    scope = pos.scopes[execution.scope]
    while scope.owner is not None:
        owner = pos.execs[scope.owner]
        node = node_of(decision.graph, pos, owner)
        if node.map is not None and owner.items is not None:
            item = owner.items[scope.index]
            shown: dict[str, Any] = {"item": _hidden(item, node.map, scope.index, decision.graph.secrets)}
            try:
                key = item_key(node, shown["item"], scope.index)
            except InputError:
                key = str(scope.index)
            if key != str(scope.index):
                shown["key"] = key
            yield shown
        scope = pos.scopes[owner.scope]


def _hidden(item: Any, spec: MapSpec, index: int, secrets: Paths) -> Any:
    """Questions leave the run, so secret fields are masked. The map may take its items from a value inside
    another one, so the ends of their paths count too."""
    ends = tuple(path[start:] for path in secrets for start in range(len(path)) if path[start] != ANY)
    found = hide_at(item, ("item",), ends) if ends else item
    for path in compile_expr(spec.over).names if ends else ():
        found = hide_at(found, (str(path[-1]), str(index)), ends)
    return found
