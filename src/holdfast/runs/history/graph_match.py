"""Matches two versions of a graph: which node and edge of one is which of the other."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import Graph
from holdfast.model.migration import Migration, chain, composed
from holdfast.model.program import Program


class Match(msgspec.Struct, frozen=True):
    """By number, old -> new; what is in neither mapping was removed."""

    old: Graph
    new: Program
    way: tuple[Migration, ...]
    nodes: dict[int, int]
    edges: dict[int, int]

    @property
    def graph(self) -> Graph:
        return self.new.graph

    def name(self, node: int) -> str:
        """The present name of an old node; its old name if it was removed."""
        if node < 0:
            return ""
        found = self.nodes.get(node)
        return self.old.nodes[node].id if found is None else self.graph.nodes[found].id

    def order(self, node: int) -> int:
        """The place of an old node among the new ones; for a removed node, that of its last neighbour."""
        return next((self.nodes[n] for n in range(node, -1, -1) if n in self.nodes), 0)

    def child(self, node: int) -> Match | None:
        """The bodies of a map or sub-flow, matched in turn; None if one side has no body."""
        before, after = self.old.nodes[node].body, self.graph.nodes[self.nodes[node]].body
        if not before or not after:
            return None
        return match(self.old.subgraphs[before], self.new.children[after])

    def nearest(self, node: int) -> str:
        """The new node that a removed one most likely became: of the same kind, and new itself."""
        kind = self.old.nodes[node].kind
        fresh = [n.id for i, n in enumerate(self.graph.nodes) if n.kind is kind and i not in self._taken]
        if len(fresh) == 1:
            return fresh[0]
        from difflib import get_close_matches

        return next(iter(get_close_matches(self.old.nodes[node].id, fresh, n=1, cutoff=0.3)), "")

    @property
    def _taken(self) -> set[int]:
        return set(self.nodes.values())


def way_to(old: Graph, new: Program) -> tuple[Migration, ...]:
    """The declared migrations that lead from one to the other; empty if none are declared."""
    version = graph_fingerprint(old.spec)
    names = {name for name in (version, old.label) if name}
    return chain(new.migrations, names, new.names) or ()


def match(old: Graph, new: Program) -> Match:
    way = way_to(old, new)
    renamed = composed(way)
    nodes = {
        i: new.graph.index[name]
        for i, node in enumerate(old.nodes)
        if (name := renamed.get(node.id, node.id)) in new.graph.index
    }
    if new.is_item and len(old.nodes) == len(new.graph.nodes) == 1:
        # The function of a map has no name that runs know.
        nodes = {0: 0}
    return Match(old, new, way, nodes, _edges(old, new.graph, nodes))


def _edges(old: Graph, new: Graph, nodes: dict[int, int]) -> dict[int, int]:
    """Edges between the same nodes; of several, first those with the same id, then in order."""
    between: dict[tuple[int, int], list[int]] = {}
    for e in range(len(new.edges)):
        between.setdefault((new.source[e], new.target[e]), []).append(e)
    found: dict[int, int] = {}
    for by_id in (True, False):
        for e, edge in enumerate(old.edges):
            source, target = nodes.get(old.source[e], -2), old.target[e]
            ways = between.get((source, target if target < 0 else nodes.get(target, -2)), [])
            same = [w for w in ways if not by_id or new.edges[w].id == edge.id]
            if e not in found and same:
                found[e] = same[0]
                ways.remove(same[0])
    return found


def ahead(graph: Graph, start: Iterable[int]) -> set[int]:
    """These nodes and all that follow them by forward edges; in a walk, by any."""
    found = set(start)
    todo = list(found)
    while todo:
        for e in graph.out[todo.pop()]:
            target = graph.target[e]
            if target >= 0 and target not in found and (graph.walk or graph.edges[e].loop is None):
                found.add(target)
                todo.append(target)
    return found


def place_in(matched: Match, place: str) -> str:
    """The present name of a node's place (`send/pay`); empty if it was removed."""
    name, _, rest = place.partition("/")
    node = matched.old.index.get(name, -1)
    if node not in matched.nodes:
        return ""
    if not rest:
        return matched.name(node)
    child = matched.child(node)
    inner = place_in(child, rest) if child is not None else ""
    return f"{matched.name(node)}/{inner}" if inner else ""
