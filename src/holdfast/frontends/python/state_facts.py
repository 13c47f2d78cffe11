"""What the code of a flow says about its state: `StateFacts` for the checks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from holdfast.frontends.python.code import has_visible_writes_only, visible_writes
from holdfast.frontends.python.code_values import CodeFacts
from holdfast.frontends.python.declarations import Collector
from holdfast.model.checks.names import StateFacts
from holdfast.model.state_schema import StateSchema


def given_to(builder: Collector, child: str) -> frozenset[str] | None:
    """What the nodes of this flow pass to a sub-flow, if each of them says so."""
    nodes = [node for node in builder.nodes if node.body == child]
    inputs = [node.subflow.inputs if node.subflow is not None else None for node in nodes]
    if not nodes or any(each is None for each in inputs):
        return None
    return frozenset[str]().union(*(each or () for each in inputs))


def state_facts(
    builder: Collector, schema: StateSchema, given: frozenset[str] | None, children: dict[str, StateFacts]
) -> StateFacts:
    handlers = {name: h for name, h in builder.handlers.items() if "item" not in h.takes}
    # One function may serve thousands of nodes.
    read = cache(CodeFacts)
    code = {name: read(h.fn, h.takes) for name, h in handlers.items()}
    compared = {name: each.comparisons for name, each in code.items()}
    for name, routers in builder.routers.items():
        for router in routers:
            own = read(router.fn, router.takes)
            arms = () if router.boolean else own.returns(key for key in router.choices if key is not None)
            compared[name] = (*compared.get(name, ()), *own.comparisons, *arms)
    route_reads = {
        name: _together(read(router.fn, router.takes).reads for router in routers)
        for name, routers in builder.routers.items()
    }
    outcomes = {name: each.outcomes for name, each in code.items()}
    return StateFacts(
        types={name: schema.fields[name].annotation for name in schema.declared},
        writes={name: visible_writes(h.fn) for name, h in handlers.items()},
        complete=frozenset(name for name, h in handlers.items() if has_visible_writes_only(h.fn)),
        given=given,
        values={name: each.values for name, each in code.items()},
        compared={name: found for name, found in compared.items() if found},
        outcomes={name: words for name, words in outcomes.items() if words is not None},
        reads={name: each.reads for name, each in code.items()},
        route_reads=route_reads,
        unread_asks={name: each.unread_asks for name, each in code.items() if each.unread_asks},
        question_slips={name: each.question_slips for name, each in code.items() if each.question_slips},
        children=children,
    )


def _together(found: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    sets = list(found)
    return None if None in sets else frozenset[str]().union(*(each or () for each in sets))
