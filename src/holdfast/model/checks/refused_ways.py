"""Ways that a refusal takes as an approval does. All are warnings.

An edge whose condition can hold after both; edges that are exchanged; and a refusal, a timeout or a failure
that leads to the same node as the approval, over others that tell it nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Final

from holdfast.model.checks.comparisons import reader
from holdfast.model.checks.coverage import case_that_holds
from holdfast.model.checks.effect_paths import acts, set_by
from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import RESULT
from holdfast.model.checks.unread_decisions import DecisionSearch
from holdfast.model.checks.value_sets import DECISION, is_decided, leaves
from holdfast.model.expressions import Expr, Path
from holdfast.model.expressions.nodes import Literal, Node, children_of
from holdfast.model.graph import Edge, EdgeKind
from holdfast.model.graph import Node as GraphNode
from holdfast.model.hold_declaration import BRANCH
from holdfast.types.decision_words import approves, approving_answer, refuses, refusing_answer

RULE: Final = "refusal-passes"
_OF_RESULT: Final = (("decision",), ("effective_decision",))
_MOST_NEAR: Final = 100


def check_refused_ways(view: ValidationView) -> None:
    if view.walk:
        return
    for name, edges in view.out.items():
        conditions = {edge.id: found for edge in edges if (found := _condition(view, edge)) is not None}
        for path, yes, no in _decisions(view, view.nodes[name], edges, conditions):
            _DecidedEdges(view, edges, conditions, path).check(
                yes, no, at_hold=view.nodes[name].hold is not None
            )
    for node in view.nodes.values():
        _check_detours(view, node)


def _condition(view: ValidationView, edge: Edge) -> Expr | None:
    if edge.when is None or edge.language == "clauses":
        return None
    found = view.compiled(edge.when)
    return found if isinstance(found, Expr) else None


def _decisions(
    view: ValidationView, node: GraphNode, edges: list[Edge], conditions: dict[str, Expr]
) -> Iterator[tuple[Path, str, str]]:
    """Of the hold that these edges leave, or that they ask about: its field and its two answers."""
    spec = node.hold
    if spec is not None and spec.options:
        yes, no = approving_answer(spec.options), refusing_answer(spec.options)
        names = {spec.bind, spec.bind + RESULT}
        read = {part for each in conditions.values() for path in each.names for part in path}
        if yes is not None and no is not None and names & read:
            yield (spec.bind,), yes, no
        return
    holds = {each.hold.bind + RESULT: each.hold for each in view.nodes.values() if each.hold is not None}
    for path in sorted({path for each in conditions.values() for path in each.names}):
        behind = holds.get(path[0])
        if behind is not None and behind.options and path[1:] not in _OF_RESULT:
            yes, no = approving_answer(behind.options), refusing_answer(behind.options)
            if yes is not None and no is not None:
                yield (behind.bind,), yes, no
            continue
        found = reader(view, edges[0])(path)
        words = [each.value for each in leaves(found) if each.source == DECISION] if is_decided(found) else []
        texts = sorted(each for each in words if isinstance(each, str))
        yes, no = next(filter(approves, texts), None), next(filter(refuses, texts), None)
        if yes is not None and no is not None:
            yield path, yes, no


class _DecidedEdges:
    """The edges of a node, in the cases in which one decision is known."""

    def __init__(
        self, view: ValidationView, edges: list[Edge], conditions: dict[str, Expr], path: Path
    ) -> None:
        self._view, self._edges, self._conditions, self._path = view, edges, conditions, path
        self._search = DecisionSearch(view)

    def check(self, yes: str, no: str, *, at_hold: bool) -> None:
        wrong = {each.edge for each in self._view.problems}
        refused: list[tuple[Edge, str]] = []
        approved = False
        for edge in self._edges:
            act = self._act(edge)
            after_yes, after_no = (act is not None and self._can_be_taken(edge, word) for word in (yes, no))
            approved = approved or after_yes
            if act is None or not after_no or edge.id in wrong:
                continue
            if not after_yes:
                refused.append((edge, act))
            elif not self._means(edge, no):
                self._warn(edge, f"it can be taken after {no!r} too, and leads to {act!r}, which acts", yes)
        # Of the hold's own edges `refusal-acts` is reported elsewhere.
        for edge, act in refused if not approved and not at_hold else ():
            why = f"it is taken after {no!r} and leads to {act!r}, which acts, and after {yes!r} nothing does"
            self._view.warn("refusal-acts", why, edge=edge.id, fix="exchange the edges, or the options")

    def _act(self, edge: Edge) -> str | None:
        if edge.id not in self._conditions and edge.kind is not EdgeKind.otherwise:
            return None
        return self._search.first_act_from(edge.target, _names(self._path))

    def _means(self, edge: Edge, no: str) -> bool:
        """Whether its own condition names the refusal."""
        own = self._conditions.get(edge.id)
        return own is not None and any(each == no for each in _literals(own.node))

    def _can_be_taken(self, edge: Edge, word: str) -> bool:
        own = self._conditions.get(edge.id)
        others = [] if own is not None else list(self._conditions.values())
        return case_that_holds(self._view, edge, own, others, partial(self._fixed, edge, word))

    def _fixed(self, edge: Edge, word: str, asked: Path) -> str | None:
        """The value of a path while this is decided. After a refusal, no other decision is an approval."""
        field = self._path[0]
        plain = asked[1:] if asked[:1] == ("scratch",) else asked
        if plain == self._path or (plain[:1] == (field + RESULT,) and plain[1:] in _OF_RESULT):
            return word
        if plain == (field + RESULT,):
            return "a result"
        found = reader(self._view, edge)(asked)
        if refuses(word) and asked[:1] != ("input",) and is_decided(found):
            words = (each.value for each in leaves(found) if each.source == DECISION)
            return next((each for each in words if isinstance(each, str) and refuses(each)), None)
        return None

    def _warn(self, edge: Edge, why: str, yes: str) -> None:
        fix = f"ask for the approval on it: {'.'.join(self._path)} == {yes!r} and ..."
        self._view.warn(RULE, why, edge=edge.id, fix=fix)


def _names(path: Path) -> frozenset[str]:
    return frozenset({path[0], path[0] + RESULT})


def _literals(node: Node) -> Iterator[object]:
    if isinstance(node, Literal):
        yield node.value
    for child in children_of(node):
        yield from _literals(child)


def _check_detours(view: ValidationView, hold: GraphNode) -> None:
    spec = hold.hold
    yes = approving_answer(spec.options) if spec is not None and spec.options else None
    if spec is None or yes is None:
        return
    names, action = frozenset({spec.bind, spec.bind + RESULT}), spec.on_timeout or ""
    branch = action.removeprefix(BRANCH) if action.startswith(BRANCH) else ""
    approved: set[str] = set()
    others: list[tuple[Edge, str]] = []
    for edge in view.out[hold.id]:
        found = _condition(view, edge)
        words = set(_literals(found.node)) if found is not None else set[object]()
        if edge.kind is EdgeKind.failure or (edge.kind is EdgeKind.chosen and edge.target == branch):
            others.append((edge, "a failure" if edge.kind is EdgeKind.failure else "the timeout"))
        elif words and all(isinstance(each, str) and refuses(each) for each in words):
            others.append((edge, "a refusal"))
        elif yes in words:
            approved |= _unaware_acts(view, edge.target, names)
    for edge, why in others:
        # The direct way is `approving-default`, or said of the options.
        same = (_unaware_acts(view, edge.target, names) - {edge.target}) & approved
        if same:
            view.warn(
                RULE,
                f"{why} of {hold.id!r} leads to {min(same)!r}, as {yes!r} does, and nothing tells it which",
                edge=edge.id,
                fix="lead to another node, or to an end",
            )


def _unaware_acts(view: ValidationView, start: str, names: frozenset[str]) -> set[str]:
    """The first nodes from there that act, and that read nothing of what is set on the way."""
    found, seen = set[str](), set[str]()
    search = DecisionSearch(view)
    todo: deque[tuple[str, frozenset[str]]] = deque([(start, names)])
    while todo and len(seen) < _MOST_NEAR:
        name, written = todo.popleft()
        node = view.nodes.get(name)
        if node is None or name in seen or node.hold is not None:
            continue
        seen.add(name)
        if search.is_read_at(name, written):
            continue
        if acts(view, name):
            found.add(name)
            continue
        written = written | set_by(view, name)
        edges = [each for each in view.out[name] if each.kind is not EdgeKind.failure]
        # A choice on the way may be about it.
        todo += [(each.target, written) for each in edges if each.kind is EdgeKind.always]
    return found
