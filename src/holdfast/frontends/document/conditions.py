"""Under which decisions a node runs, so that a name which is set on some paths only can be told (CV-22).

A condition is a set of alternatives, each a set of decisions that were made: (node, outcome). A node whose
outcomes all lead to the same place decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from holdfast.frontends.document.node_type import ERROR, OTHERWISE, OUT, DocumentEdge, DocumentNode

Alternative: TypeAlias = frozenset[tuple[str, str]]
Condition: TypeAlias = frozenset[Alternative]

ALWAYS: Final[Condition] = frozenset({frozenset()})
_MOST: Final = 32
"""Alternatives; where there are more, nothing is said."""
_ASIDE: Final = frozenset({ERROR, "timeout", "violation"})


class RunConditions:
    """Of the nodes of one document, without cycles. None: too many alternatives to tell."""

    def __init__(self, nodes: Mapping[str, DocumentNode]) -> None:
        self._nodes = nodes
        self._into: dict[str, list[tuple[str, DocumentEdge]]] = {name: [] for name in nodes}
        for name, node in nodes.items():
            for edge in node.leaving:
                if edge.target in self._into:
                    self._into[edge.target].append((name, edge))
        self._outcomes = {name: _outcomes(node) for name, node in nodes.items()}
        self._of: dict[str, Condition | None] = {}
        for name in _in_order(nodes, self._into):
            self._of[name] = self._condition(name)

    def of(self, name: str) -> Condition | None:
        return self._of.get(name)

    def of_success(self, name: str) -> Condition | None:
        """That the node ran and did not fail."""
        outcomes = [each for each in self._outcomes[name] if each != ERROR]
        return self._after(name, outcomes)

    def of_failure(self, name: str) -> Condition | None:
        """That the node ran and failed, and its port `error` was taken."""
        return self._after(name, [ERROR])

    def after(self, name: str, edge: DocumentEdge) -> Condition | None:
        """That this edge of the node was taken."""
        return self._after(name, _fires_on(self._nodes[name], edge, self._outcomes[name]))

    def _condition(self, name: str) -> Condition | None:
        arriving = [self.after(source, edge) for source, edge in self._into[name]]
        parent = self._nodes[name].node.parent
        if not arriving and parent is not None:
            return self._of.get(parent, ALWAYS)
        return self.any_of(arriving) if arriving else ALWAYS

    def _after(self, name: str, outcomes: Iterable[str]) -> Condition | None:
        before, chosen = self._of.get(name), list(outcomes)
        if before is None or set(chosen) == set(self._outcomes[name]):
            return before
        return frozenset(
            each | {(name, outcome)}
            for each in before
            for outcome in chosen
            if not _excludes(each, name, outcome)
        )

    def any_of(self, given: Iterable[Condition | None]) -> Condition | None:
        found: set[Alternative] = set()
        for each in given:
            if each is None:
                return None
            found |= each
        if len(found) > 4 * _MOST:
            return None
        merged = self._merged(found)
        return None if len(merged) > _MOST else frozenset(merged)

    def _merged(self, found: set[Alternative]) -> set[Alternative]:
        """Alternatives that differ only in a decision whose outcomes are all there are one."""
        changed = True
        while changed:
            changed = False
            found = {each for each in found if not any(other < each for other in found)}
            for each in list(found):
                for name, _ in each:
                    rest = frozenset(one for one in each if one[0] != name)
                    same = {rest | {(name, outcome)} for outcome in self._outcomes.get(name, ())}
                    if len(same) > 1 and same <= found:
                        found = (found - same) | {rest}
                        changed = True
                        break
                if changed:
                    break
        return found


def implies(condition: Condition, other: Condition) -> bool:
    """Whether the other holds in each alternative. Not found does not mean that it is not so."""
    return all(any(need <= each for need in other) for each in condition)


def _excludes(alternative: Alternative, name: str, outcome: str) -> bool:
    return any(other == name and made != outcome for other, made in alternative)


def _outcomes(node: DocumentNode) -> tuple[str, ...]:
    """What its decision can be. An edge with a condition of its own is a decision by itself."""
    ports = [port for port in node.type.ports(node) if port not in (OUT, *_ASIDE)]
    found = ports if len(ports) > 1 and not _several(node) else [OUT]
    out = node.from_port(OUT)
    if any(edge.edge.otherwise for edge in out) and not any(edge.edge.is_free for edge in out):
        # One of them is taken, whatever holds.
        found = [*(edge.id for edge in out if edge.edge.when is not None), OTHERWISE]
    aside = {edge.port for edge in node.leaving if edge.port in _ASIDE}
    return (*found, *sorted(aside))


def _several(node: DocumentNode) -> bool:
    return getattr(node.config, "mode", "first") == "all"


def _fires_on(node: DocumentNode, edge: DocumentEdge, outcomes: tuple[str, ...]) -> list[str]:
    if edge.edge.otherwise:
        return [OTHERWISE]
    if edge.edge.when is not None or (_several(node) and edge.port not in (OUT, *_ASIDE)):
        return [edge.id]
    if edge.port in outcomes and edge.port != OUT:
        return [edge.port]
    return [each for each in outcomes if each not in _ASIDE]


def _in_order(
    nodes: Mapping[str, DocumentNode], into: Mapping[str, list[tuple[str, DocumentEdge]]]
) -> list[str]:
    """Each after those that lead to it; nodes of a cycle, which is an error anyway, are left out."""
    left = {name: len(into[name]) for name in nodes}
    inside: dict[str, list[str]] = {}
    for name, node in nodes.items():
        parent = node.node.parent
        if not left[name] and parent is not None and parent in nodes:
            left[name] = 1
            inside.setdefault(parent, []).append(name)
    todo = [name for name, count in left.items() if not count]
    found: list[str] = []
    while todo:
        name = todo.pop()
        found.append(name)
        for target in (*(edge.target for edge in nodes[name].leaving), *inside.get(name, ())):
            if target in left:
                left[target] -= 1
                if not left[target]:
                    todo.append(target)
    return found
