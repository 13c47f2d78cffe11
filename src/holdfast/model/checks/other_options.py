"""Approvals by exclusion: `decision != 'reject'` where a third option, or a timeout, leads on too.

Said where an option that no condition names leads to what acts, as the approving one does. All are warnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from holdfast.errors import MissingNameError, NotComparableError
from holdfast.model.checks.comparisons import ComparisonPlace, expressions, reader
from holdfast.model.checks.effect_paths import acts, leads_to_act, until_asked
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import FALLBACK, CodeComparison
from holdfast.model.checks.value_sets import DECISION, LITERAL, ValueSet, is_decided, leaves, values_of
from holdfast.model.expressions import MISSING, Expr, Path, truthy
from holdfast.model.expressions.nodes import Default, Literal, Node, children_of
from holdfast.model.graph import Edge, EdgeKind
from holdfast.model.hold_declaration import BRANCH
from holdfast.types.decision_words import approves, refuses

RULE: Final = "other-option"
_EQUALITY: Final = frozenset({"==", "!=", "in", "not in"})


def check_other_options(view: ValidationView) -> None:
    if view.walk:
        return
    expired = dict(_expired(view))
    for name, edges in view.out.items():
        tested = {edge.id: found for edge in edges if (found := _condition(view, edge)) is not None}
        for path in sorted({path for each in tested.values() for path in each.names}):
            _Decision(view, edges, tested, path).check(expired.get(name, {}))
    for text, place in expressions(view):
        found = view.compiled(text)
        if isinstance(found, Expr):
            _check_defaults(view, found.node, place)
    for name, compared in view.facts.compared.items():
        _check_code(view, name, compared)


def _condition(view: ValidationView, edge: Edge) -> Expr | None:
    if edge.when is None or edge.language == "clauses":
        return None
    found = view.compiled(edge.when)
    return found if isinstance(found, Expr) else None


class _Decision:
    """What each edge of a node does with the values of one decision."""

    def __init__(
        self, view: ValidationView, edges: list[Edge], tested: Mapping[str, Expr], path: Path
    ) -> None:
        self._view, self._edges, self._tested, self._path = view, edges, tested, path
        known = [
            found for edge in edges if edge.id in tested and is_decided(found := reader(view, edge)(path))
        ]
        self.options = _options(known[0]) if known else []
        self._named = {value for each in tested.values() for value in _literals(each.node)}

    def check(self, expired: Mapping[Path, tuple[str, Any]]) -> None:
        if not self.options:
            return
        for edge in self._edges:
            hold, empty = expired.get(self._path, ("", None))
            if edge.target not in self._view.nodes or not self._approves(edge):
                continue
            if not leads_to_act(self._view, edge, hold=edge.source):
                continue
            others = [each for each in self._unnamed(edge) if not approves(each) and not refuses(each)]
            if others and len(self._unnamed(edge)) > 1:
                self._warn(edge, f"after {others[0]!r} too, which no condition here names")
            elif hold and empty not in self._named and self._taken(edge, empty):
                self._warn(edge, f"after the timeout of {hold!r} too, which leaves {empty!r}")

    def _approves(self, edge: Edge) -> bool:
        """Whether it is taken after an approval, and not after every answer."""
        yes = [each for each in self.options if approves(each)]
        no = [each for each in self.options if refuses(each)]
        taken = {each for each in self.options if self._taken(edge, each)}
        return (bool(taken.intersection(yes)) if yes else bool(no)) and bool(taken) and (
            taken.isdisjoint(no) if no else len(taken) < len(self.options)
        )  # fmt: skip

    def _unnamed(self, edge: Edge) -> list[str]:
        return [each for each in self.options if each not in self._named and self._taken(edge, each)]

    def _taken(self, edge: Edge, value: Any) -> bool:
        if edge.kind is EdgeKind.otherwise:
            return not any(self._holds(each, value, unsure=False) for each in self._tested.values())
        found = self._tested.get(edge.id)
        return found is not None and self._path in found.names and self._holds(found, value, unsure=True)

    def _holds(self, condition: Expr, value: Any, *, unsure: bool) -> bool:
        try:
            return truthy(condition.evaluate(lambda path: value if path == self._path else MISSING))
        except (MissingNameError, NotComparableError):
            return unsure  # it depends on more

    def _warn(self, edge: Edge, why: str) -> None:
        field = ".".join(self._path)
        yes = next((each for each in self.options if approves(each)), self.options[0])
        self._view.warn(
            RULE,
            f"it is taken {why}, and leads to what acts",
            edge=edge.id,
            fix=f"name what is meant: {field} == {yes!r}, or {field} in [{yes!r}, ...]",
        )


def _options(values: ValueSet) -> list[str]:
    found = {each.value for each in leaves(values) if each.source == DECISION and isinstance(each.value, str)}
    return sorted(found)


def _literals(node: Node) -> Iterator[Any]:
    if isinstance(node, Literal):
        yield node.value
    for child in children_of(node):
        yield from _literals(child)


def _expired(view: ValidationView) -> Iterator[tuple[str, dict[Path, tuple[str, Any]]]]:
    """By node behind the branch of a timeout: the field that then has no decision, its hold and its value."""
    found: dict[str, dict[Path, tuple[str, Any]]] = {}
    for node in view.nodes.values():
        action = (node.hold.on_timeout if node.hold is not None else None) or ""
        if node.hold is None or not action.startswith(BRANCH):
            continue
        about = node.id, view.spec.defaults.get(node.hold.bind)
        for name in until_asked(view, [action.removeprefix(BRANCH)], hold=node.id):
            found.setdefault(name, {})[(node.hold.bind,)] = about
    yield from found.items()


def _check_defaults(view: ValidationView, node: Node, place: ComparisonPlace) -> None:
    """`decision | default('approve')`."""
    if isinstance(node, Default):
        read = reader(view, place.edge)
        if is_decided(read(node.path)):
            written = values_of(node.fallback, read)
            _approved_by_default(view, place, ".".join(node.path), written)
    for child in children_of(node):
        _check_defaults(view, child, place)


def _approved_by_default(view: ValidationView, place: ComparisonPlace, text: str, written: ValueSet) -> None:
    words = (e.value for e in leaves(written) if e.source == LITERAL and isinstance(e.value, str))
    yes = next((each for each in words if approves(each)), None)
    if yes is not None:
        view.warn(
            "approving-default",
            f"{place.what} takes {text} for {yes!r} before there is a decision",
            node=place.node,
            edge=place.edge.id if place.edge is not None else None,
            fix="leave the default out, or let it refuse",
        )


def _check_code(view: ValidationView, name: str, compared: Iterable[CodeComparison]) -> None:
    node = view.nodes.get(name)
    if node is None:
        return
    named: dict[tuple[str, tuple[str, ...]], set[Any]] = {}
    first: dict[tuple[str, tuple[str, ...]], CodeComparison] = {}
    for each in compared:
        left, right = each.left(view.values.read_from_code), each.right(view.values.read_from_code)
        if each.operator == FALLBACK:
            place = ComparisonPlace(what=f"its code (line {each.line} of {each.function})", node=name)
            if is_decided(left):
                _approved_by_default(view, place, each.left_text, right)
        elif each.operator in _EQUALITY and not each.shared:
            for side, other, text in ((left, right, each.left_text), (right, left, each.right_text)):
                if is_decided(side) and not is_decided(other):
                    key = text, tuple(_options(side))
                    first.setdefault(key, each)
                    named.setdefault(key, set()).update(e.value for e in leaves(other))
    if acts(view, name) or node.script or node.hold is not None:
        for (text, options), literals in named.items():
            _by_exclusion(view, name, text, options, literals, first[text, options])


def _by_exclusion(
    view: ValidationView,
    name: str,
    text: str,
    options: tuple[str, ...],
    literals: set[Any],
    first: CodeComparison,
) -> None:
    """Code that compares a decision with its refusal alone."""
    left = [each for each in options if each not in literals]
    others = [each for each in left if not approves(each) and not refuses(each)]
    refused = [each for each in literals if isinstance(each, str) and refuses(each)]
    yes = [each for each in left if approves(each)]
    if others and refused and len(left) > 1 and (yes or not any(map(approves, options))):
        view.warn(
            RULE,
            f"its code (line {first.line} of {first.function}) compares {text} with {refused[0]!r} alone: "
            f"{others[0]!r} counts as an approval",
            node=name,
            fix=f"name what is meant: {text} == {(yes or left)[0]!r}",
        )
