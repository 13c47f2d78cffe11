"""Cycles must go through declared loop edges, each with a maximum number of turns."""

from __future__ import annotations

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.graph import Edge, EdgeKind

Steps = dict[str, list[str]]


def check_cycles(view: ValidationView) -> None:
    if view.walk:
        return
    _undeclared(view)
    _loops(view)


def _undeclared(view: ValidationView) -> None:
    """One report for each group of connected undeclared cycles, which names one of them."""
    steps = _steps(view, view.forward)
    for knot in strongly_connected(steps):
        if len(knot) == 1 and knot[0] not in steps[knot[0]]:
            continue
        cycle = _cycle_in(knot, steps)
        view.error(
            "cycle",
            f"a cycle without a declared loop: {' -> '.join([*cycle, cycle[0]])}",
            node=cycle[0],
            fix=f"declare the edge back as a loop: flow.loop({cycle[-1]}, {cycle[0]}, when=..., max=...)",
        )


def _loops(view: ValidationView) -> None:
    loops = [edge for edge in view.sound_edges if edge.loop is not None]
    if not loops:
        return
    steps = _steps(view, view.sound_edges)
    knot_of = {name: i for i, knot in enumerate(strongly_connected(steps)) for name in knot}
    ahead = _steps(view, view.forward)
    for edge in loops:
        _cap(view, edge)
        same = knot_of[edge.source] == knot_of[edge.target]
        if not same or not _reaches(ahead, edge.target, edge.source, knot_of):
            view.error(
                "loop-open",
                f"it is declared as a loop, but no path leads from {edge.target!r} to {edge.source!r}",
                edge=edge.id,
                fix="use flow.edge for an edge that is not part of a cycle",
            )


def _cap(view: ValidationView, edge: Edge) -> None:
    if edge.loop is not None and edge.loop < 1:
        view.error("loop-cap", f"max is {edge.loop}", edge=edge.id, fix="use 1 or more")
    if edge.on_limit not in ("fail", "continue"):
        view.error("loop-limit", f"on_limit {edge.on_limit!r} is neither fail nor continue", edge=edge.id)
    elif edge.kind is EdgeKind.always and edge.on_limit == "fail":
        view.warn(
            "loop-endless",
            f"it has no condition, so the loop repeats until its maximum of {edge.loop} turns fails the run",
            edge=edge.id,
            fix='give it when=..., or on_limit="continue" for a fixed number of turns',
        )


def _steps(view: ValidationView, edges: list[Edge]) -> Steps:
    steps: Steps = {name: [] for name in view.nodes}
    for edge in edges:
        steps[edge.source].append(edge.target)
    return steps


def _reaches(steps: Steps, source: str, target: str, knot_of: dict[str, int]) -> bool:
    """Only inside the component: nodes outside it cannot lead back."""
    seen, todo, knot = {source}, [source], knot_of[source]
    while todo:
        here = todo.pop()
        if here == target:
            return True
        for following in steps[here]:
            if following not in seen and knot_of[following] == knot:
                seen.add(following)
                todo.append(following)
    return False


def strongly_connected(steps: Steps) -> list[list[str]]:
    """Strongly connected components (Tarjan), without recursion: a flow may be ten thousand nodes long."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    found: list[list[str]] = []
    for root in steps:
        if root in index:
            continue
        work = [(root, iter(steps[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            here, following = work[-1]
            fresh = next((other for other in following if _visit(here, other, index, low, on_path)), None)
            if fresh is not None:
                index[fresh] = low[fresh] = len(index)
                path.append(fresh)
                on_path.add(fresh)
                work.append((fresh, iter(steps[fresh])))
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[here])
            if low[here] == index[here]:
                found.append(_pop_component(here, path, on_path))
    return found


def _visit(here: str, other: str, index: dict[str, int], low: dict[str, int], on_path: set[str]) -> bool:
    """Whether `other` is new; one that is on the current path lowers the low link of `here`."""
    if other not in index:
        return True
    if other in on_path:
        low[here] = min(low[here], index[other])
    return False


def _pop_component(root: str, path: list[str], on_path: set[str]) -> list[str]:
    knot: list[str] = []
    while not knot or knot[-1] != root:
        knot.append(path.pop())
    on_path.difference_update(knot)
    return knot[::-1]


def _cycle_in(knot: list[str], steps: Steps) -> list[str]:
    """A cycle inside the component, found from its first node."""
    inside = set(knot)
    here = knot[0]
    order: dict[str, int] = {}
    trail: list[str] = []
    while here not in order:
        order[here] = len(trail)
        trail.append(here)
        here = next(other for other in steps[here] if other in inside)
    return trail[order[here] :]
