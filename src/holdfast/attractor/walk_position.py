"""The position of a walk at the top level, by the names of its stages, for checkpoint files."""

from __future__ import annotations

from typing import Any

from holdfast.attractor.context import copied
from holdfast.model.graph import Graph
from holdfast.model.position import Position, Scope

_COUNTED = ("outcome", "label", "jumps", "fail_jumps")


class WalkPosition:
    """A view of the current position."""

    def __init__(self, graph: Graph, pos: Position) -> None:
        self._graph, self._pos = graph, pos

    @property
    def _scope(self) -> Scope:
        return self._pos.scopes[""]

    @property
    def restarts(self) -> int:
        return int(self._scope.walk.get("restarts", 0))

    @property
    def gates(self) -> dict[str, bool]:
        return copied(self._scope.walk.get("gates", {}))

    @property
    def retries(self) -> dict[str, int]:
        """The retries of each stage; only a success resets them (AT-A12)."""
        execs = self._pos.execs.values()
        trying = {self._name(e.node): e.failures for e in execs if not e.scope and e.failures}
        return {**copied(self._scope.walk.get("retries", {})), **trying}

    @property
    def under_way(self) -> str:
        """The target of the selected edge; "" if there is none."""
        return next((self._name(e.node) for e in self._pos.execs.values() if not e.scope), "")

    @property
    def visits(self) -> dict[str, int]:
        return {self._name(node): count for node, count in self._scope.visits.items()}

    @property
    def counters(self) -> dict[str, Any]:
        """The counters of limits, and the outcome that a routing stage passes on."""
        walk = self._scope.walk
        found = {key: copied(walk[key]) for key in _COUNTED if key in walk}
        before = {self._name(node): count for node, count in self._scope.before.items()}
        return {**found, "before": before} if before else found

    def _name(self, node: int) -> str:
        return self._graph.nodes[node].id
