"""What follows an edge: whether a node that writes, or acts outside, is reached before another question."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from holdfast.model.checks.graph_view import ValidationView
from holdfast.model.checks.names import bound_by
from holdfast.model.graph import Edge, EdgeKind, GraphSpec
from holdfast.types.status import Effect

ACTS: Final = frozenset({Effect.write, Effect.external})
MOST_NEAR: Final = 100


def leads_to_act(view: ValidationView, edge: Edge, *, hold: str = "") -> bool:
    return any(acts(view, name) for name in until_asked(view, [edge.target], hold=hold))


def until_asked(view: ValidationView, start: Iterable[str], *, hold: str = "") -> Iterator[str]:
    """The nodes from these on, without those behind another question. `hold`: where they were decided."""
    todo, seen = deque(start), {hold}
    while todo and len(seen) < MOST_NEAR:
        name = todo.popleft()
        node = view.nodes.get(name)
        if name in seen or node is None or node.hold is not None:
            continue
        seen.add(name)
        yield name
        todo += [each.target for each in view.out[name] if each.kind is not EdgeKind.failure]


def set_by(view: ValidationView, name: str) -> set[str]:
    """The fields that it is known to set."""
    facts = view.facts
    return {*bound_by(view.nodes[name]), *facts.writes.get(name, ()), *facts.values.get(name, ())}


def acts(view: ValidationView, name: str) -> bool:
    """Whether it writes or acts outside, itself or in the flow that it runs."""
    node = view.nodes[name]
    inner = next((each for each in view.spec.subgraphs if each.name == node.body), None)
    return node.effect in ACTS or (inner is not None and _acts_within(inner))


def _acts_within(spec: GraphSpec) -> bool:
    return any(node.effect in ACTS for node in spec.nodes) or any(map(_acts_within, spec.subgraphs))
