"""Positions of random runs, moved to a graph whose nodes are called and ordered otherwise, and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from holdfast.engine.messages import RunRecovered
from holdfast.engine.step import step
from holdfast.model.fingerprint import graph_fingerprint
from holdfast.model.graph import END, Graph, GraphSpec, Node
from holdfast.model.migration import Migration
from holdfast.model.position import SETTLED, Position
from holdfast.model.program import Program
from holdfast.model.snapshot import dump_position
from holdfast.model.state_schema import StateSchema
from holdfast.runs.migrate.remap import remap
from tests.properties.checks import DEEP, EVERYTHING, chooser
from tests.properties.graphs import Plan, plans
from tests.properties.play import Play, fold, stored


def other(name: str) -> str:
    return name if name == END else f"new_{name}"


def renamed(spec: GraphSpec) -> GraphSpec:
    """The same work under other names and in another order, sub-flows included."""
    nodes = tuple(_node(node) for node in reversed(spec.nodes))
    edges = tuple(
        replace(e, id=f"e{i}", source=other(e.source), target=other(e.target))
        for i, e in enumerate(spec.edges)
    )
    inner = tuple(renamed(sub) for sub in spec.subgraphs)
    return replace(spec, nodes=nodes, edges=edges, start=tuple(map(other, spec.start)), subgraphs=inner)


def _node(node: Node) -> Node:
    where, colon, target = node.on_failure.partition(":")
    return replace(
        node, id=other(node.id), on_failure=f"{where}{colon}{other(target)}" if colon else node.on_failure
    )


def program_of(spec: GraphSpec, was: GraphSpec) -> Program:
    rename = {
        a.id: b.id for a in was.nodes for b in spec.nodes if b.id in (other(a.id), a.id.removeprefix("new_"))
    }
    before = {sub.name: sub for sub in was.subgraphs}
    return Program(
        Graph(spec),
        version=graph_fingerprint(spec),
        code={},
        handlers={},
        routers={},
        schema=StateSchema(),
        children={sub.name: program_of(sub, before[sub.name]) for sub in spec.subgraphs},
        migrations=(Migration(source=graph_fingerprint(was), rename=rename),),
    )


def shown(pos: Position) -> dict[str, Any]:
    for execution in pos.execs.values():
        execution.born = None
    plain = dump_position(pos)
    plain["execs"] = sorted(plain["execs"], key=lambda e: (e["scope"], e["node"]))
    return plain


def starts(graph: Graph, pos: Position) -> set[str]:
    decision = step(graph, pos, [RunRecovered()], pos.at)
    return {e.scope + pos.scope_graph(graph, pos.scopes[e.scope]).nodes[e.node].id for e in decision.starts}


@pytest.mark.covers("TOOL-VER-04", "TOOL-VER-07")
@given(plan=plans(EVERYTHING) | plans(DEEP), data=st.data())
@settings(max_examples=100)
def test_a_position_comes_back_as_it_was_when_it_is_renamed_there_and_back(
    plan: Plan, data: st.DataObject
) -> None:
    choose = chooser(data)
    play = Play(plan, choose).start().to_end()
    pos = fold(plan.graph, play.journal, choose(len(play.journal)))
    assume(pos.status == "running" and pos.failing is None and pos.cancelling is None)
    assume(not any(SETTLED in e.subs for e in pos.execs.values()))
    before, moved = shown(stored(pos)), stored(pos)
    there = renamed(plan.graph.spec)
    new, old = program_of(there, plan.graph.spec), program_of(plan.graph.spec, there)
    note(f"{plan}")
    assert remap(moved, plan.graph, new).misfits == []
    assert {label.replace("new_", "") for label in starts(new.graph, stored(moved))} == starts(
        plan.graph, stored(pos)
    )
    assert remap(moved, new.graph, old).misfits == []
    assert shown(moved) == before
