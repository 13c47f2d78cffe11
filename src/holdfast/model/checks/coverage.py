"""Edges of a node that can leave none to take: the run would end there as if it were done.

Found by trying values: for each name that the conditions read, its possible values, or those around the
literals that it is compared with. What is found is a case, not a guess; what is not found is not excluded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise, product
from typing import Any, Final

from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.checks.comparisons import reader
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.value_sets import DECISION, is_decided, leaves
from holdfast.model.checks.value_types import BOOLEAN, NULL, NUMBER, TEXT, ValueType
from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.expressions import MISSING, Expr, Path, truthy
from holdfast.model.expressions.nodes import (
    Comparison,
    Default,
    Exists,
    Items,
    Literal,
    Name,
    Node,
    children_of,
)
from holdfast.model.graph import Edge, EdgeKind
from holdfast.model.graph import Node as GraphNode
from holdfast.model.hold_declaration import BRANCH
from holdfast.types.text import clean_text

_MOST_CASES: Final = 1024
_OTHER: Final = "any other text"


def check_constant_conditions(view: ValidationView) -> None:
    """A condition that is the same in every case: `amount > 100 and amount < 50`, and
    `decision != 'reject' or decision != 'no'`."""
    for edge in view.spec.edges:
        found = view.compiled(edge.when) if edge.when is not None and edge.language != "clauses" else None
        if not isinstance(found, Expr) or not found.names or not _is_simple(found.node):
            continue
        answers = _answers(view, edge, found)
        if len(answers) != 1:
            continue
        shown = "holds in every case" if True in answers else "never holds"
        severity = Severity.error if view.names.typed and False in answers else Severity.warning
        view.problems.append(
            GraphProblem(
                rule="constant-condition",
                severity=severity,
                edge=edge.id,
                message=f"its condition {clean_text(edge.when or '', 80)!r} {shown}",
                fix="correct it, for example `and` instead of `or`; or leave it out",
            )
        )


def _answers(view: ValidationView, edge: Edge, condition: Expr) -> set[bool]:
    """Empty if there are too many cases to try all, or none can be evaluated."""
    found = set[bool]()
    for tried, case in enumerate(_Values(view, edge, [condition]).cases()):
        if tried == _MOST_CASES:
            return set()
        try:
            found.add(truthy(condition.evaluate(lambda path: case.get(path, MISSING))))  # noqa: B023
        except (MissingNameError, NotComparableError):
            continue
    return found


def _is_simple(node: Node) -> bool:
    """Whether the values that are tried are all that matter: two or more comparisons of names with literals.
    One alone that never holds is reported as such."""
    compared = [each for each in _walk(node) if isinstance(each, Comparison)]
    sides = [({type(each.left), type(each.right)}) for each in compared]
    plain = all(Name in pair and pair & {Literal, Items} for pair in sides)
    listed = [each for each in _walk(node) if isinstance(each, Items)]
    texts = any(e.operator in ("in", "not in") and not isinstance(e.right, Items) for e in compared)
    known = all(isinstance(item, Literal) for each in listed for item in each.items)
    names = sum(isinstance(each, Name) for each in _walk(node))
    return len(compared) > 1 and plain and known and not texts and names == len(compared)


def check_coverage(view: ValidationView) -> None:
    for name, edges in view.out.items():
        conditional = _conditional(view.nodes[name], edges)
        # One conditional edge is an arm that may be left out; several that leave a gap are a slip.
        if len(conditional) > 1:
            _check(view, name, conditional)


def _conditional(node: GraphNode, edges: list[Edge]) -> list[Edge]:
    """The edges of a node, if all of them have expressions."""
    named = policy_targets(node)
    own = [e for e in edges if e.kind is not EdgeKind.failure and not (
        e.kind is EdgeKind.chosen and e.target in named
    )]  # fmt: skip
    plain = all(e.kind is EdgeKind.when and e.when is not None and e.language != "clauses" for e in own)
    return own if plain else []


def policy_targets(node: GraphNode) -> set[str]:
    """Where a timeout or a guardrail leads; no condition decides on that."""
    found: set[str] = set()
    if node.hold is not None and (node.hold.on_timeout or "").startswith(BRANCH):
        found.add((node.hold.on_timeout or "")[len(BRANCH) :])
    if node.guard is not None and node.guard.reroute is not None:
        found.add(node.guard.reroute)
    return found


def _check(view: ValidationView, name: str, edges: list[Edge]) -> None:
    compiled = [view.compiled(edge.when or "") for edge in edges]
    conditions = [each for each in compiled if isinstance(each, Expr)]
    if len(conditions) < len(edges):
        return  # reported already
    case = _uncovered(conditions, _Values(view, edges[0], conditions))
    why = "no edge that leaves it is taken"
    if case is None and any(e.loop is not None and e.on_limit == "continue" for e in edges):
        left = [c for c, e in zip(conditions, edges, strict=True) if e.loop is None or e.on_limit == "fail"]
        case = _uncovered(left, _Values(view, edges[0], conditions))
        why = "after the loop's last turn no edge is taken"
    if case is None:
        return
    shown = " and ".join(f"{'.'.join(path)} is {_shown(value)}" for path, value in case.items())
    severity = Severity.error if view.names.typed else Severity.warning
    view.problems.append(
        GraphProblem(
            rule="no-edge",
            severity=severity,
            node=name,
            message=f"{why} when {shown}: the run ends there" if shown else f"{why}: the run ends there",
            fix="add an edge with otherwise=True: to another node, or to END if the run is to end",
        )
    )


def _shown(value: object) -> str:
    return "missing" if value is MISSING else value if value == _OTHER else repr(value)  # type: ignore[return-value]


def _uncovered(conditions: list[Expr], values: _Values) -> dict[Path, Any] | None:
    return _first_case(conditions, values.cases(), _none)


def _none(results: Iterator[bool]) -> bool:
    return not any(results)


def _first_case(
    conditions: list[Expr], cases: Iterable[dict[Path, Any]], matches: Callable[[Iterator[bool]], bool]
) -> dict[Path, Any] | None:
    """The first case whose results match. None of them is one in which a condition cannot be evaluated: there
    the run stops."""
    for case in islice(cases, _MOST_CASES):
        results = (truthy(each.evaluate(lambda path: case.get(path, MISSING))) for each in conditions)  # noqa: B023
        try:
            if matches(results):
                return case
        except (MissingNameError, NotComparableError):
            continue
    return None


def can_hold_together(view: ValidationView, one: Edge, other: Edge) -> bool:
    """Whether one run can take both of these edges of a node: they are always taken, or there is a case in
    which both conditions hold."""
    kinds = {one.kind, other.kind}
    if not kinds <= {EdgeKind.always, EdgeKind.when}:
        return False
    found = [view.compiled(edge.when) for edge in (one, other) if edge.when is not None]
    conditions = [each for each in found if isinstance(each, Expr)]
    if len(conditions) < len(found) or any(edge.language == "clauses" for edge in (one, other)):
        return False
    if not conditions:
        return True
    return _first_case(conditions, _Values(view, one, conditions).cases(), all) is not None


def case_that_holds(
    view: ValidationView,
    edge: Edge,
    wanted: Expr | None,
    others: list[Expr],
    fixed: Callable[[Path], Any],
) -> bool:
    """Whether there is a case in which `wanted` holds, or without it none of `others`. `fixed`: the value of
    a path; None: any."""
    conditions = others if wanted is None else [wanted]
    cases = (
        {path: value if (own := fixed(path)) is None else own for path, value in case.items()}
        for case in _Values(view, edge, conditions).cases()
    )
    return _first_case(conditions, cases, _none if wanted is None else any) is not None


class _Values:
    """The values to try for each path."""

    def __init__(self, view: ValidationView, edge: Edge, conditions: list[Expr]) -> None:
        self._view, self._read = view, reader(view, edge)
        self._nodes = [node for each in conditions for node in _walk(each.node)]
        self._paths = sorted({path for each in conditions for path in each.names})
        self._pools = {path: self._pool(path) for path in self._paths}

    def cases(self) -> Iterator[dict[Path, Any]]:
        for values in product(*self._pools.values()):
            yield dict(zip(self._pools, values, strict=True))

    def _pool(self, path: Path) -> list[Any]:
        pool = self._possible(path)
        asked = any(isinstance(n, (Exists, Default)) and n.path == path for n in self._nodes)
        return [*pool, MISSING] if asked else pool

    def _possible(self, path: Path) -> list[Any]:
        found = self._read(path)
        if is_decided(found):
            # What a timeout leaves there is not decided on by these edges.
            known = sorted((each for each in leaves(found) if each.source == DECISION), key=repr)
            return list(dict.fromkeys(each.value for each in known))
        known = self._view.names.type_at(path, on_edge=True)
        if known.values is not None:
            return list(known.values)
        literals = list(self._literals(path))
        return _around(known, literals)

    def _literals(self, path: Path) -> Iterator[Any]:
        """What the path is compared with."""
        for node in self._nodes:
            if isinstance(node, Comparison):
                sides = (node.left, node.right)
                if any(isinstance(side, (Name, Default)) and side.path == path for side in sides):
                    for side in sides:
                        yield from _values_in(side)


def _values_in(node: Node) -> Iterator[Any]:
    if isinstance(node, Literal):
        yield node.value
    elif isinstance(node, Items):
        for item in node.items:
            yield from _values_in(item)


def _around(known: ValueType, literals: list[Any]) -> list[Any]:
    numbers = sorted({v for v in literals if isinstance(v, (int, float)) and not isinstance(v, bool)})
    texts = list(dict.fromkeys(v for v in literals if isinstance(v, str)))
    families = known.families
    if families is None:
        families = {NUMBER} if numbers else set[str]()
        families |= {TEXT} if texts else set[str]()
        families |= {NULL} if None in literals else set[str]()
        families = families or {BOOLEAN}
    pool: list[Any] = []
    if NUMBER in families:
        pool += _numbers(numbers, whole=known.whole)
    if TEXT in families:
        pool += [*texts, _OTHER]
    if BOOLEAN in families:
        pool += [True, False]
    if NULL in families:
        pool.append(None)
    return pool or [_OTHER]


def _numbers(given: Iterable[float], *, whole: bool) -> list[float]:
    numbers = list(given) or [0]
    pool: list[float] = [numbers[0] - 1, *numbers, numbers[-1] + 1]
    for low, high in pairwise(numbers):
        middle = (low + high) // 2 if whole else (low + high) / 2
        if low < middle < high:
            pool.append(middle)
    return pool


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for child in children_of(node):
        yield from _walk(child)
