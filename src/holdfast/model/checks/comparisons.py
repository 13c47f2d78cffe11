"""Comparisons that never hold: a decision with a text that is none of its options, an outcome with a word
that is none, a number with a text. Decided by the sets of values that both sides can take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from holdfast.model.checks.comparison_report import ComparisonPlace, ComparisonReport
from holdfast.model.checks.field_values import decided_only
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import CONSTANT, FALLBACK, TRUTH, CodeComparison
from holdfast.model.checks.outcomes import outcomes_of
from holdfast.model.checks.value_sets import (
    DECISION,
    LITERAL,
    UNKNOWN,
    AnyValue,
    Constant,
    FixedList,
    Read,
    ValueSet,
    computed_from,
    is_decided,
    leaves,
    of_type,
    values_of,
)
from holdfast.model.expressions import Expr, Path
from holdfast.model.expressions.nodes import (
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
    spell,
)
from holdfast.model.expressions.values import truthy
from holdfast.model.graph import Edge, HoldSpec

_EQUALITY: Final = frozenset({"==", "!=", "===", "!==", "in", "not in"})


def check_comparisons(view: ValidationView) -> None:
    for text, place in expressions(view):
        found = view.compiled(text)
        if isinstance(found, Expr):
            ExpressionComparisons(view, place).check(found.node)
    for node, compared in view.facts.compared.items():
        for each in compared:
            _compare_in_code(view, node, each)


def _compare_in_code(view: ValidationView, node: str, each: CodeComparison) -> None:
    place = ComparisonPlace(what=f"its code (line {each.line} of {each.function})", node=node)
    report = ComparisonReport(view, place)

    hold = view.nodes[node].hold if node in view.nodes else None

    def read(path: Path) -> ValueSet:
        found = view.values.read_from_code(path)
        report.note(found, path)
        # A function of an edge that leaves the hold: it is decided.
        return decided_only(found) if hold is not None and path == (hold.bind,) else found

    paths: list[Path] = []

    def noted(path: Path) -> ValueSet:
        paths.append(path)
        return read(path)

    left, right = each.left(noted), each.right(noted)
    if each.operator in _EQUALITY:
        _check_free_answer(view, place, paths, left | right)
        _check_free_question(view, each, node, left | right)
    report.unsure = report.unsure or each.shared
    if each.operator == FALLBACK:
        return
    if each.operator in (TRUTH, CONSTANT):
        report.truth(left, each.left_text, right if each.operator == CONSTANT else None)
        return
    if any(is_decided(side) or computed_from(side) for side in (left, right)):
        report.compare(each.operator, left, right, each.left_text, each.right_text)


def _check_free_answer(
    view: ValidationView, place: ComparisonPlace, paths: list[Path], values: ValueSet
) -> None:
    """A hold without options takes any text: `== 'reject'` lets "no" and "Reject" pass."""
    written = _written(values)
    free = {node.hold.bind: node.id for node in view.nodes.values() if node.hold and _is_free(node.hold)}
    asked = next((name for path in paths if len(path) == 1 and (name := path[0]) in free), None)
    if asked is None or not written:
        return
    hold = free[asked]
    if any(each.rule == "free-answer" and each.node == hold for each in view.problems):
        return
    where = f"node {place.node!r}" if place.edge is None else f"edge {place.edge.id!r}"
    compared = f"{where} compares {asked!r} with {', '.join(map(repr, written))}"
    problem = f"it has no options, so any text is accepted as its answer, and {compared}"
    _warn_free(view, hold, problem, written)


def _check_free_question(view: ValidationView, each: CodeComparison, node: str, values: ValueSet) -> None:
    """The same for the answer of `ctx.ask`."""
    written = _written(values)
    if written and any(isinstance(one, AnyValue) and one.free for one in values):
        problem = (
            f"its code (line {each.line} of {each.function}) compares {each.left_text} with {written[0]!r}, "
            "and the question has no options, so any text is accepted as its answer"
        )
        _warn_free(view, node, problem, written)


def _warn_free(view: ValidationView, node: str, problem: str, written: list[str]) -> None:
    view.warn("free-answer", problem, node=node, fix=f"give it options, such as {[*written, '...']!r}")


def _written(values: ValueSet) -> list[str]:
    """The texts that answers are compared with."""
    return sorted(each.value for each in _constants(values) if isinstance(each.value, str) and each.value)


def _constants(values: ValueSet) -> Iterator[Constant]:
    """The literals of a comparison."""
    for each in values:
        if isinstance(each, Constant) and each.source == LITERAL:
            yield each
        elif isinstance(each, FixedList):
            for member in each.members:
                yield from _constants(member)


def _is_free(hold: HoldSpec) -> bool:
    return hold.options is None and hold.schema is None and not hold.form and not hold.target


def expressions(view: ValidationView) -> Iterator[tuple[str, ComparisonPlace]]:
    """Every expression of the graph with its place."""
    for edge in view.spec.edges:
        if edge.when is not None and edge.language != "clauses":
            yield edge.when, ComparisonPlace(what="its condition", edge=edge)
    for node in view.spec.nodes:
        if node.timer is not None and node.timer.until is not None:
            yield node.timer.until, ComparisonPlace(what="until", node=node.id)
        if node.map is not None:
            yield node.map.over, ComparisonPlace(what="over", node=node.id)
        if node.subflow is not None:
            for name, text in (node.subflow.inputs or {}).items():
                yield text, ComparisonPlace(what=f"its input {name!r}", node=node.id)
        for what, text in view.facts.conditions.get(node.id, ()):
            yield text, ComparisonPlace(what=what, node=node.id)


def hold_before(view: ValidationView, edge: Edge | None) -> HoldSpec | None:
    source = view.nodes.get(edge.source) if edge is not None else None
    return None if source is None else source.hold


def reader(view: ValidationView, edge: Edge | None) -> Read:
    """The values at a path, as the condition of that edge or an expression of a node reads it."""
    hold = hold_before(view, edge)

    def read(path: Path) -> ValueSet:
        if edge is not None and path == ("outcome",):
            return outcomes_of(view, edge)
        inside = view.names.field(path)
        if inside is None:
            return UNKNOWN
        found = view.values.read(inside)
        if not is_decided(found) or any(isinstance(each, AnyValue) for each in found):
            known = view.names.type_at(path, on_edge=edge is not None)
            source = computed_from(found)
            if source and known.values is None:
                return frozenset({AnyValue(known.families, source)})
            return of_type(known, ".".join(path))
        # Decided just before: it is one of the options, and no longer what it was at first.
        return decided_only(found) if hold is not None and inside == (hold.bind,) else found

    return read


class ExpressionComparisons:
    def __init__(self, view: ValidationView, place: ComparisonPlace) -> None:
        self._view, self._place = view, place
        self._reader = reader(view, place.edge)
        self._report = ComparisonReport(view, place)

    def _read(self, path: Path) -> ValueSet:
        found = self._reader(path)
        self._report.note(found, self._view.names.field(path))
        return found

    def check(self, node: Node, *, as_truth: bool = True) -> None:
        if isinstance(node, Comparison):
            self._report.unsure = False
            for side in (node.left, node.right):
                if isinstance(side, (Name, Default)) and side.path == ("outcome",):
                    self._read_after_hold(side.path)
            left, right = values_of(node.left, self._read), values_of(node.right, self._read)
            if node.operator in _EQUALITY:
                names = [side.path for side in (node.left, node.right) if isinstance(side, (Name, Default))]
                _check_free_answer(self._view, self._place, names, left | right)
            self._report.compare(node.operator, left, right, _shown(node.left), _shown(node.right))
            self._in_text(node)
            as_truth = False
        elif isinstance(node, (Name, Default)) and self._place.edge is not None:
            self._read_after_hold(node.path)
            if as_truth:
                self._truth(node)
        elif isinstance(node, (Literal, Items)) and as_truth:
            self._constant(node)
        elif isinstance(node, Choose):
            self.check(node.test)
            for branch in (node.then, node.otherwise):
                self.check(branch, as_truth=as_truth)
            return
        for child in children_of(node):
            self.check(child, as_truth=as_truth and isinstance(node, (AllOf, AnyOf, Not)))

    def _in_text(self, node: Comparison) -> None:
        """`tier in 'gold,silver'`: 'old' is a part of that text too."""
        text = node.right.value if isinstance(node.right, Literal) else None
        if (
            node.operator not in ("in", "not in")
            or not isinstance(text, str)
            or isinstance(node.left, Literal)
        ):
            return
        edge, listed = self._place.edge, [each.strip() for each in text.split(",")]
        self._view.warn(
            "text-part",
            f"{self._place.what} asks whether {_shown(node.left)} is a part of the text {text!r}, as its "
            "letters are",
            node=self._place.node,
            edge=edge.id if edge is not None else None,
            fix=f"list the values: {_shown(node.left)[1:-1]} {node.operator} {listed!r}",
        )

    def _truth(self, node: Name | Default) -> None:
        found = values_of(node, self._read)
        fixed = all(isinstance(each, Constant) and truthy(each.value) for each in found)
        if fixed and is_decided(found):
            first = sorted(str(each.value) for each in leaves(found) if each.source == DECISION)[0]
            field = ".".join(node.path)
            self._error(
                "decision-truth",
                f"is only {field!r}, which is true whatever is decided",
                f"compare it: {field} == {first!r}",
            )

    def _constant(self, node: Literal | Items) -> None:
        """`decision == 'approve' || 'approved'`: the second half was meant to be a comparison."""
        if self._place.edge is None or (isinstance(node, Literal) and isinstance(node.value, bool)):
            return
        self._error(
            "constant-operand",
            f"has {_shown(node)} where a comparison belongs",
            "compare a name with it, or list the values: name in ['a', 'b']",
        )

    def _read_after_hold(self, path: Path) -> None:
        hold = hold_before(self._view, self._place.edge)
        if hold is not None and path[0] == "output":
            self._error(
                "hold-output", "reads 'output', and a hold has none", f"read its decision: {hold.bind}"
            )

        elif hold is not None and path == ("outcome",) and not self._view.walk:
            edge = self._place.edge
            self._view.warn(
                "hold-outcome",
                f"{self._place.what} reads 'outcome', which is 'success' whatever is decided",
                edge=edge.id if edge is not None else None,
                fix=f"compare its decision: {hold.bind} == 'approve'",
            )

    def _error(self, rule: str, message: str, fix: str) -> None:
        edge = self._place.edge
        self._view.error(
            rule,
            f"{self._place.what} {message}",
            node=self._place.node,
            edge=edge.id if edge is not None else None,
            fix=fix,
        )


def _shown(node: Node) -> str:
    return repr(".".join(node.path)) if isinstance(node, (Name, Default)) else spell(node)
