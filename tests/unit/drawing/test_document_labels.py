"""Graphs of flow documents show the ports by which a run leaves a node."""

from __future__ import annotations

from holdfast.drawing import NodeOverlay, State, from_graph
from holdfast.model.graph import Graph
from tests.documents.rule_examples import flow
from tests.documents.run import graph

ROUTER = "{id: how, type: router, config: {cases: [{id: big, when: 'n > 9'}, {id: small, when: 'n > 1'}]}}"
SETS = "\n".join(f"{{id: {name}, type: set, config: {{values: {{{name}: 1}}}}}}" for name in "bcd")


def labels(text: str) -> dict[tuple[str, str], str]:
    drawn = from_graph(Graph(graph(text, {"safe": lambda state: True})), expand=True)
    return {(edge.source, edge.target): edge.label for edge in drawn.edges}


def test_ports_of_router_join_and_guardrail_are_labels() -> None:
    edges = "a -> how\nhow:big -> b -> z\nhow:small -> c -> z\nhow:else -> d -> z"
    found = labels(flow(f"{ROUTER}\n{SETS}", edges))
    assert [found["how", name] for name in "bcd"] == ["big", "small", "else"]
    join = "{id: met, type: join, config: {wait: all, timeout: 1h}}"
    found = labels(flow(f"{SETS}\n{join}", "a -> b -> met\na -> c -> met\nmet -> z\nmet:timeout -> d -> z"))
    assert (found["met", "z"], found["met", "d"]) == ("", "timeout")
    guard = "{id: g, type: guardrail, config: {check: safe, on_violation: reroute}}"
    found = labels(flow(f"{SETS}\n{guard}", "a -> g -> b -> z\ng:violation -> c -> z\nb:error -> d -> z"))
    assert (found["g", "c"], found["b", "d"]) == ("violation", "error")


def test_loop_is_drawn_as_in_the_document_without_the_node_that_the_graph_has_behind_it() -> None:
    loop = "{id: again, type: loop, config: {while: 'n < 3', max_turns: 5}}\n{id: i, type: set, parent: again, config: {values: {x: 1}}}"  # noqa: E501
    text = flow(loop, "a -> again -> z")
    found = labels(text)
    assert (found["i", "again"], found["again", "z"]) == ("n < 3 (max 5 turns)", "done")
    compiled = Graph(graph(text))
    assert [node.id for node in from_graph(compiled).nodes if node.label] == ["a", "again", "i", "z"]
    assert all("__next" not in f"{edge.source}{edge.target}" for edge in from_graph(compiled).edges)
    # Its loop failed if it did: it has reached its limit.
    failed = from_graph(compiled, {"again__next": NodeOverlay(state=State.failed, note="5 turns")})
    assert [(node.state, node.note) for node in failed.nodes if node.id == "again"] == [
        (State.failed, "5 turns")
    ]
