"""Branches that run at the same time and set the same field: the last in canonical order wins (D-25)."""

from __future__ import annotations

from itertools import combinations
from typing import Final

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import bound_by
from holdfast.model.graph import EdgeKind

# A warning is not worth a slow compile: of a field that very many nodes set only some pairs are compared.
_MOST_WRITERS: Final = 24


def check_conflicts(view: ValidationView) -> None:
    if view.walk:
        return
    for field, writers in _writers(view).items():
        if len(writers) > 1 and field not in view.spec.reducers:
            _compare(view, field, writers[:_MOST_WRITERS])


def _writers(view: ValidationView) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in view.nodes.values():
        for field in sorted({*bound_by(node), *view.facts.writes.get(node.id, ())}):
            found.setdefault(field, []).append(node.id)
    return found


def _compare(view: ValidationView, field: str, writers: list[str]) -> None:
    before = {name: ancestors(view, name) for name in writers}
    for one, other in combinations(writers, 2):
        if one in before[other] or other in before[one]:
            continue
        if fork_between(view, before[one], before[other]):
            view.warn(
                "concurrent-set",
                f"it and {other!r} set {field!r} in branches that run at the same time: "
                f"the later in the flow's order wins",
                node=one,
                fix=f"give {field!r} a reducer, such as Annotated[list[str], append], or use two fields",
            )
            return


def ancestors(view: ValidationView, name: str) -> set[str]:
    """The nodes before it, and itself."""
    seen, todo = {name}, [name]
    while todo:
        for edge in view.into[todo.pop()]:
            if edge.source not in seen:
                seen.add(edge.source)
                todo.append(edge.source)
    return seen


def fork_between(view: ValidationView, one: set[str], other: set[str]) -> bool:
    """Whether a node leads to both unconditionally, by different edges: conditional arms exclude each
    other."""
    starts = [name for name in view.spec.start if name in one or name in other]
    if any(a in one and b in other and a != b for a in starts for b in starts):
        return True
    for name in one & other:
        always = [
            edge.target for edge in view.out[name] if edge.kind is EdgeKind.always and edge.loop is None
        ]
        if any(a in one and b in other and a != b for a in always for b in always):
            return True
    return False
