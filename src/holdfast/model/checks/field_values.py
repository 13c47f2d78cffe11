"""The values that each field of a graph can have: decisions, and where they are copied to.

Followed are holds, code that shows what it sets, and the inputs and outputs of sub-flows and maps. A field
that no decision reaches is not of interest, and left to its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from holdfast.model.checks.names import RESULT, StateFacts, bound_by
from holdfast.model.checks.value_sets import (
    DECISION,
    INITIAL,
    UNKNOWN,
    Constant,
    Read,
    ValueSet,
    computed_from,
    constants,
    entries,
    is_decided,
    members,
    union,
    values_of,
)
from holdfast.model.expressions import ExprSyntaxError, Path, compile_expr
from holdfast.model.graph import GraphSpec, HoldSpec, Node
from holdfast.model.hold_declaration import BRANCH, default_of
from holdfast.types.terms import HoldTerms

_MOST_ROUNDS: Final = 30
_OF_RESULT: Final = ("decision", "effective_decision")


class FieldValues:
    """Of one graph, and of its sub-graphs."""

    def __init__(self, spec: GraphSpec, facts: StateFacts) -> None:
        self.spec, self.facts = spec, facts
        self.fields: dict[str, ValueSet] = {}
        self.given: dict[str, ValueSet] = {}
        self.bound = {n.hold.bind for n in spec.nodes if n.hold is not None and n.hold.options is not None}
        self.children = {
            child.name: FieldValues(child, facts.children.get(child.name) or StateFacts())
            for child in spec.subgraphs
        }

    def read(self, path: Path) -> ValueSet:
        """For a path from a field of the state."""
        if len(path) == 1:
            found = self.fields.get(path[0], UNKNOWN)
        elif len(path) == 2 and path[0].endswith(RESULT) and path[1] in _OF_RESULT:
            field = path[0].removesuffix(RESULT)
            decided = self.fields.get(field, UNKNOWN) if field in self.bound else UNKNOWN
            found = union((decided, constants([None], INITIAL, field)))
        else:
            found = self._inside(path)
        return found if is_decided(found) or computed_from(found) else UNKNOWN

    def _inside(self, path: Path) -> ValueSet:
        """An entry of a mapping that code has put into a field."""
        found = self.fields.get(path[0], UNKNOWN)
        for name in path[1:]:
            found = entries(found, constants([name]))
        return found

    @cached_property
    def hides_writes(self) -> bool:
        """Whether code of this graph may set fields that its source does not show."""
        works = {node.id for node in self.spec.nodes if node.id in self.facts.values}
        return not works <= self.facts.complete

    def turn(self) -> bool:
        """Follow everything one step further. Returns whether anything was new."""
        before = dict(self.fields)
        found: dict[str, list[ValueSet]] = {name: [values] for name, values in self.given.items()}
        for node in self.spec.nodes:
            for field, values in self._writes(node):
                found.setdefault(field, []).append(values)
        for field, value in self.spec.defaults.items():
            if field in found:
                found[field].append(constants([value], INITIAL, field))
        self.fields = {
            field: UNKNOWN if field in self.spec.reducers else union(sets) for field, sets in found.items()
        }
        changed = self.fields != before
        for name, child in self.children.items():
            child.given = self._given_to(name)
            changed = child.turn() or changed
        return changed

    def forget(self) -> None:
        self.fields = dict.fromkeys(self.fields, UNKNOWN)
        for child in self.children.values():
            child.forget()

    def _writes(self, node: Node) -> list[tuple[str, ValueSet]]:
        if node.hold is not None:
            answers = UNKNOWN if node.hold.options is None else answers_of(node.hold)
            return [(node.hold.bind, answers), *((field, UNKNOWN) for field in bound_by(node)[1:])]
        if node.subflow is not None:
            child = self.children.get(node.subflow.body)
            outputs = (node.subflow.outputs or {}).items()
            return [(field, _output(text, child)) for field, text in outputs]
        shown: Mapping[str, Any] = self.facts.values.get(node.id, {})
        named = {*bound_by(node), *self.facts.writes.get(node.id, ())}
        found = [(field, UNKNOWN) for field in sorted(named - shown.keys())]
        return found + [(field, value(self.read_from_code)) for field, value in shown.items()]

    def read_from_code(self, path: Path) -> ValueSet:
        return self.fields.get(path[0], UNKNOWN) if len(path) == 1 else self.read(path)

    def _given_to(self, body: str) -> dict[str, ValueSet]:
        found: dict[str, list[ValueSet]] = {}
        for node in self.spec.nodes:
            if node.body == body:
                for field, values in self._passed(node).items():
                    found.setdefault(field, []).append(values)
        return {field: union(sets) for field, sets in found.items()}

    def _passed(self, node: Node) -> dict[str, ValueSet]:
        if node.map is not None:
            over = self._expression(node.map.over)
            return {"item": members(over) or UNKNOWN}
        if node.subflow is not None and node.subflow.inputs is not None:
            return {name: self._expression(text) for name, text in node.subflow.inputs.items()}
        return dict(self.fields)

    def _expression(self, text: str) -> ValueSet:
        return _evaluated(text, lambda path: self.read_from_code(path[1:] if path[0] == "state" else path))


def field_values(spec: GraphSpec, facts: StateFacts | None) -> FieldValues:
    found = FieldValues(spec, facts or StateFacts())
    for _ in range(_MOST_ROUNDS):
        if not found.turn():
            return found
    # Only values that are computed from themselves grow for so long: nothing is claimed of them.
    found.forget()
    return found


def _output(text: str, child: FieldValues | None) -> ValueSet:
    if child is None:
        return UNKNOWN

    def read(path: Path) -> ValueSet:
        if path[0] in ("artifacts", "output"):
            return UNKNOWN
        return child.read_from_code(path[1:] if path[0] == "state" and len(path) > 1 else path)

    return _evaluated(text, read)


def _evaluated(text: str, read: Read) -> ValueSet:
    try:
        return values_of(compile_expr(text).node, read)
    except ExprSyntaxError:
        return UNKNOWN


def answers_of(hold: HoldSpec) -> ValueSet:
    """What the field can be after the hold; after its timeout leads elsewhere, it has no decision."""
    answers: list[Any] = [option.id for option in hold.options or ()]
    terms = hold.terms or HoldTerms()
    action = hold.on_timeout or ""
    if action.startswith("default") or terms.final_action == "default_option":
        answers.append(default_of(hold.options, terms))
    found = constants(answers, DECISION, hold.bind)
    return found | constants([None], INITIAL, hold.bind) if action.startswith(BRANCH) else found


def decided_only(values: ValueSet) -> ValueSet:
    """Without what was there before the decision."""
    return frozenset(each for each in values if not (isinstance(each, Constant) and each.source == INITIAL))
