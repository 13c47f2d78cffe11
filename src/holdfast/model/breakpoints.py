"""Where breakpoints are: names of nodes, also of nodes inside maps and sub-flows (`send/pay`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.errors import InputError
from holdfast.model.graph import Graph
from holdfast.types.hold import BREAKPOINT

TYPE: Final = BREAKPOINT
SUFFIX: Final = "__breakpoint"


def place_of(scope: str, node: str) -> str:
    """The node's place in the flow, without visit and item: `send/pay` for `pay` in the scope
    `send.1[0]/`."""
    if not scope:
        return node
    around = [part.rpartition("[")[0].rpartition(".")[0] for part in scope.split("/")[:-1]]
    return "/".join([*around, node])


def places(graph: Graph, around: str = "") -> Iterator[tuple[str, Graph, str]]:
    """Every node with its place, the graph that it is in, and its id."""
    for node in graph.nodes:
        yield around + node.id, graph, node.id
        if node.body:
            yield from places(graph.subgraphs[node.body], f"{around}{node.id}/")


def find_places(graph: Graph, names: Iterable[str], what: str) -> list[str]:
    """The places that these names refer to, each once. A sub-flow's name stands for every node that runs it.

    Raises InputError with similar names for an unknown one."""
    known = {place: (inner, node) for place, inner, node in places(graph)}
    found: dict[str, None] = {}
    for name in names:
        here = [name] if name in known else _in_flow(known, name)
        if not here:
            raise InputError(
                f"{what} {name!r}: flow {graph.name!r} has no such node.", hint=_near(name, known)
            )
        found.update(dict.fromkeys(here))
    return list(found)


def find_breaks(graph: Graph, names: Iterable[str]) -> list[str]:
    """As `find_places`; also raises InputError if the breakpoint's name is the name of a node."""
    known = {place: (inner, node) for place, inner, node in places(graph)}
    found = find_places(graph, names, "break at")
    for place in found:
        inner, node = known[place]
        if node + SUFFIX in inner.index:
            raise InputError(
                f"break at {place!r}: the breakpoint's name {node + SUFFIX!r} is the name of a node.",
                hint="Rename that node.",
            )
    return found


def _in_flow(known: dict[str, tuple[Graph, str]], name: str) -> list[str]:
    flow, _, node = name.rpartition("/")
    return [place for place, (inner, own) in known.items() if flow and inner.name == flow and own == node]


def _near(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(name, names, 5, 0.5) or [place for place in names if place.endswith(f"/{name}")]
    if near:
        return f"Did you mean {' or '.join(near[:5])}?"
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"It has: {', '.join(names[:20])}{more}."
