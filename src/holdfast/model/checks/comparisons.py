"""Comparisons that never hold: a decision with a text that is none of its options, a number with a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import bound_by
from holdfast.model.checks.value_types import NUMBER, TEXT, ValueType, family_of
from holdfast.model.expr import Expr, Path
from holdfast.model.expr.nodes import (
    AllOf,
    AnyOf,
    Choose,
    Comparison,
    Default,
    Items,
    Literal,
    Name,
    Node,
    Not,
    children_of,
)
from holdfast.model.graph import HoldSpec, NodeKind
from holdfast.model.hold_rules import BRANCH, default_of
from holdfast.types.terms import HoldTerms

_ORDER: Final = ("<", "<=", ">", ">=")
_IN_PART: Final = (*_ORDER, "in", "not in")


def check_comparisons(view: ValidationView) -> None:
    decisions = decisions_of(view)
    for text, what, place in expressions(view):
        found = view.compiled(text)
        if isinstance(found, Expr):
            _Comparisons(view, decisions, what, place).check(found.node)


def expressions(view: ValidationView) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(text, what it is, its place) of every expression of the graph."""
    for edge in view.spec.edges:
        if edge.when is not None and edge.language != "clauses":
            yield edge.when, "its condition", {"edge": edge.id}
    for node in view.spec.nodes:
        if node.timer is not None and node.timer.until is not None:
            yield node.timer.until, "until", {"node": node.id}
        if node.map is not None:
            yield node.map.over, "over", {"node": node.id}
        if node.subflow is not None:
            for name, text in (node.subflow.inputs or {}).items():
                yield text, f"its input {name!r}", {"node": node.id}


def decisions_of(view: ValidationView) -> dict[str, tuple[Any, ...]]:
    """By field: every value that it can have, if only holds with options set it."""
    found: dict[str, list[Any]] = {}
    free: set[str] = set(view.spec.reducers)
    for node in view.spec.nodes:
        if node.kind is NodeKind.hold and node.hold is not None:
            others = bound_by(node)[1:]
            free.update(others)
            if node.hold.options is None:
                free.add(node.hold.bind)
            else:
                found.setdefault(node.hold.bind, []).extend(_answers(node.hold))
        else:
            free.update(bound_by(node), view.facts.writes.get(node.id, ()))
    for field in found:
        if field in view.spec.defaults:
            found[field].append(view.spec.defaults[field])
        if field in (view.facts.given or ()):
            free.add(field)
    return {field: tuple(dict.fromkeys(v)) for field, v in found.items() if field not in free}


def _answers(hold: HoldSpec) -> list[Any]:
    answers: list[Any] = [option.id for option in hold.options or ()]
    terms = hold.terms or HoldTerms()
    action = hold.on_timeout or ""
    if action.startswith("default") or terms.final_action == "default_option":
        answers.append(default_of(hold.options, terms))
    if action.startswith(BRANCH):
        answers.append(None)
    return answers


class _Comparisons:
    def __init__(
        self, view: ValidationView, decisions: dict[str, tuple[Any, ...]], what: str, place: dict[str, str]
    ) -> None:
        self._view, self._decisions, self._what, self._place = view, decisions, what, place

    def check(self, node: Node, *, as_truth: bool = True) -> None:
        if isinstance(node, Comparison):
            self._comparison(node)
            as_truth = False
        elif isinstance(node, Name) and "edge" in self._place:
            self._read_after_hold(node)
            if as_truth:
                self._truth(node)
        elif isinstance(node, Literal) and as_truth and not isinstance(node.value, bool):
            self._constant(node)
        elif isinstance(node, Choose):
            self.check(node.test)
            for branch in (node.then, node.otherwise):
                self.check(branch, as_truth=as_truth)
            return
        for child in children_of(node):
            self.check(child, as_truth=as_truth and isinstance(node, (AllOf, AnyOf, Not)))

    def _truth(self, name: Name) -> None:
        field = self._decision(name.path)
        if field is not None and (self._leaves_hold(field) or all(self._decisions[field])):
            self._view.error(
                "decision-truth",
                f"{self._what} is only {field!r}, which is true whatever is decided",
                fix=f"compare it: {field} == {self._decisions[field][0]!r}",
                **self._place,
            )

    def _constant(self, literal: Literal) -> None:
        """`decision == 'approve' || 'approved'`: the second half was meant to be a comparison."""
        if "edge" in self._place:
            self._view.error(
                "constant-operand",
                f"{self._what} has {literal.value!r} where a comparison belongs",
                fix="compare a name with it, or list the values: name in ['a', 'b']",
                **self._place,
            )

    def _read_after_hold(self, name: Name) -> None:
        hold = self._hold_before()
        if hold is not None and name.path[0] == "output":
            self._view.error(
                "hold-output",
                f"{self._what} reads 'output', and a hold has none",
                fix=f"read its decision: {hold.bind}",
                **self._place,
            )

    def _leaves_hold(self, field: str) -> bool:
        """Whether the field was decided just before: then it is one of the options, and no longer empty."""
        hold = self._hold_before()
        return hold is not None and hold.bind == field

    def _hold_before(self) -> HoldSpec | None:
        edge = next(e for e in self._view.spec.edges if e.id == self._place["edge"])
        source = self._view.nodes.get(edge.source)
        return None if source is None else source.hold

    def _comparison(self, node: Comparison) -> None:
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if not isinstance(side, (Name, Default)):
                continue
            if isinstance(other, Literal) and node.operator in _IN_PART:
                self._part_of_decision(side.path, node.operator)
            for literal in _literals(node, other, is_left=side is node.left):
                self._compared(node.operator, side.path, literal)

    def _part_of_decision(self, path: Path, operator: str) -> None:
        """`decision not in 'reject'` and `decision >= 'approve'` are about letters, not about options."""
        field = self._decision(path)
        if field is not None:
            self._view.error(
                "decision-part",
                f"{self._what} uses {operator!r} on the decision {field!r}, which compares letters",
                fix=f"compare it as a whole: {field} == {self._decisions[field][0]!r}",
                **self._place,
            )

    def _compared(self, operator: str, path: Path, literal: object) -> None:
        text = ".".join(path)
        field = self._decision(path)
        if field is not None:
            if literal not in self._decisions[field]:
                why = f"compares {text!r} with {literal!r}, which is none of its options"
                self._impossible("unknown-option", why, self._decisions[field])
            return
        known = self._view.names.type_at(path, on_edge="edge" in self._place)
        if operator in _ORDER:
            self._order(text, known, literal)
        elif known.families is not None and family_of(literal) not in known.families:
            kinds = " or ".join(sorted(known.families))
            self._impossible(
                "type-mismatch", f"compares {text!r} ({kinds}) with {literal!r}, which it never is", ()
            )
        elif known.values is not None and literal not in known.values:
            self._impossible(
                "unknown-value", f"compares {text!r} with {literal!r}, which it never is", known.values
            )

    def _order(self, text: str, known: ValueType, literal: object) -> None:
        family = family_of(literal)
        if family not in (NUMBER, TEXT) or (known.families is not None and family not in known.families):
            self._impossible("type-mismatch", f"puts {text!r} and {literal!r} in order, which have none", ())

    def _decision(self, path: Path) -> str | None:
        inside = self._view.names.field(path)
        return inside[0] if inside and len(inside) == 1 and inside[0] in self._decisions else None

    def _impossible(self, rule: str, message: str, values: Sequence[Any]) -> None:
        from difflib import get_close_matches

        listed = ", ".join(repr(value) for value in values[:20])
        fix = f"use one of {listed}" if listed else "correct the name or the literal"
        texts = [value for value in values if isinstance(value, str)]
        wrong = message.partition(" with ")[2].partition(",")[0].strip("'\"")
        near = get_close_matches(wrong, texts, n=1)
        if near:
            fix = f"did you mean {near[0]!r}? {fix[0].upper()}{fix[1:]}"
        self._view.error(rule, f"{self._what} {message}", fix=fix, **self._place)


def _literals(node: Comparison, other: Node, *, is_left: bool) -> list[object]:
    if isinstance(other, Literal):
        # `'x' in field` asks about a part of the field, not about its value.
        return [] if node.operator in ("in", "not in") else [other.value]
    if isinstance(other, Items) and is_left and node.operator in ("in", "not in"):
        return [item.value for item in other.items if isinstance(item, Literal)]
    return []
