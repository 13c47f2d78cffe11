"""Rules about the shape of a graph: nodes, edges, reachability, cycles."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from holdfast.model.diagnostics import GraphProblem, Severity
from holdfast.model.graph import END, Edge, EdgeKind, GraphSpec, Node, WalkSpec
from holdfast.model.validate import validate
from tests.operations import operations


def graph(nodes: str = "a b", *edges: Edge, start: str = "a", **settings: Any) -> GraphSpec:
    made = tuple(Node(id=name) for name in nodes.split())
    return GraphSpec(name="g", nodes=made, edges=edges, start=tuple(start.split()), **settings)


def edge(source: str, target: str, **more: Any) -> Edge:
    return Edge(id=more.pop("id", f"{source}->{target}"), source=source, target=target, **more)


def found(spec: GraphSpec, severity: Severity = Severity.error) -> list[tuple[str, str | None]]:
    return [(p.rule, p.node or p.edge) for p in validate(spec) if p.severity is severity]


def only(spec: GraphSpec, rule: str) -> GraphProblem:
    (problem,) = [p for p in validate(spec) if p.rule == rule]
    return problem


def test_sound_graph_has_no_problems():
    assert validate(graph("a b", edge("a", "b"), edge("b", END))) == []


@pytest.mark.covers("G-23")
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (GraphSpec(name="g", nodes=(), edges=()), ("no-nodes", None)),
        (graph("a a"), ("duplicate-node", "a")),
        (graph("a __END__", edge("a", "__END__")), ("sentinel-id", "__END__")),
        (graph("a x/y", edge("a", "x/y")), ("node-id", "x/y")),
        (graph("a", edge("a", "z")), ("edge-target", "a->z")),
        (graph("a", edge("z", "a", loop=1)), ("edge-source", "z->a")),
        (graph("a", edge("a", "__START__")), ("edge-target", "a->__START__")),
        (graph("a b", edge("a", "b", id="e"), edge("a", END, id="e")), ("duplicate-edge", "e")),
        (graph("a b", edge("a", "b"), start=""), ("no-start", None)),
        (graph("a", start="z"), ("start-unknown", None)),
        (graph("a b", edge("a", "b"), start="a b"), ("start-with-edge", "b")),
        (graph("a b"), ("unreachable", "b")),
        (graph("a b", edge("a", "b", kind=EdgeKind.otherwise)), ("otherwise", "a->b")),
        (graph("a b", edge("a", "b", kind=EdgeKind.when)), ("no-condition", "a->b")),
        (graph("a b", edge("a", "b", kind=EdgeKind.when, when="x >")), ("expression", "a->b")),
        (graph("a b", edge("a", "b"), edge("b", "a")), ("cycle", "a")),
        (graph("a", edge("a", "a")), ("cycle", "a")),
        (
            graph("a b", edge("a", "b"), edge("b", "a", loop=0, when="x", kind=EdgeKind.when)),
            ("loop-cap", "b->a"),
        ),
        (graph("a b", edge("a", "b", loop=3)), ("loop-open", "a->b")),
        (graph("a", reducers={"x": "multiply"}), ("reducer", None)),
        (graph("a", memory="eager"), ("memory", None)),
        (graph("a", checkpoints="some"), ("checkpoints", None)),
        (graph("a", checkpoint_when="never"), ("checkpoint", None)),
        (graph("a", traversal="dance"), ("traversal", None)),
        (graph("a", code_change="panic"), ("code-change", None)),
    ],
)
def test_validation_names_the_rule_and_the_place(spec, expected):
    assert expected in found(spec)


@pytest.mark.covers("CORE-VALID-01")
def test_validation_reports_all_problems_at_once():
    spec = graph("a a b c", edge("a", "z"), edge("b", "c"), edge("c", "b"), memory="eager")
    rules = {rule for rule, _ in found(spec)}
    assert rules == {"duplicate-node", "edge-target", "unreachable", "cycle", "memory"}


@pytest.mark.covers("CORE-VALID-02")
def test_problem_says_rule_place_severity_and_how_to_repair_it():
    problem = only(graph("assess pay", edge("assess", "paj"), start="assess pay"), "edge-target")
    assert (problem.severity, problem.edge) == (Severity.error, "assess->paj")
    assert problem.fix == "did you mean 'pay'?"
    text = "edge 'assess->paj': there is no node 'paj'. Fix: did you mean 'pay'? [edge-target]"
    assert str(problem) == text


def test_cycle_is_named_node_by_node():
    spec = graph("a b c d", edge("a", "b"), edge("b", "c"), edge("c", "d"), edge("d", "b"))
    message = only(spec, "cycle").message
    assert "b -> c -> d -> b" in message or "c -> d -> b -> c" in message or "d -> b -> c -> d" in message


def test_each_knot_of_cycles_is_reported_once():
    pairs = ("sa", "ab", "ba", "sc", "cd", "dc")
    spec = graph("s a b c d", *(edge(source, target) for source, target in pairs), start="s")
    assert len([rule for rule, _ in found(spec) if rule == "cycle"]) == 2


def test_declared_loop_is_no_cycle():
    spec = graph("a b", edge("a", "b"), edge("b", "a", loop=3, kind=EdgeKind.when, when="n < 3"))
    assert validate(spec) == []


def test_loop_that_only_another_loop_closes_is_refused():
    """b reaches a only by the other loop edge: it would never be entered from its own header."""
    spec = graph(
        "a b", edge("a", "b"), edge("b", "a", loop=2, kind=EdgeKind.when, when="x"), edge("b", "b", loop=2)
    )
    assert found(spec) == []
    crossed = graph(
        "a b c",
        edge("a", "b"),
        edge("a", "c"),
        edge("c", "a", loop=2, kind=EdgeKind.when, when="x"),
        edge("b", "c", loop=2, kind=EdgeKind.when, when="x"),
    )
    assert found(crossed) == [("loop-open", "b->c")]


def test_endless_loop_is_a_warning():
    spec = graph("a b", edge("a", "b"), edge("b", "a", loop=3))
    assert found(spec, Severity.warning) == [("loop-endless", "b->a")]
    fixed = graph("a b", edge("a", "b"), edge("b", "a", loop=3, on_limit="continue"))
    assert validate(fixed) == []


def test_walk_may_go_round_freely_and_jump_to_retry_targets():
    spec = graph("a b c", edge("a", "b"), edge("b", "a"), edge("c", "a"), traversal="walk", retry_target="c")
    assert validate(spec) == []


def test_walk_with_an_unknown_retry_target_is_refused():
    node = Node(id="a", walk=WalkSpec(goal_gate=True, retry_target="z"))
    assert found(GraphSpec(name="g", nodes=(node,), edges=(), start=("a",), traversal="walk")) == [
        ("retry-target", "a")
    ]


def test_expression_fault_shows_its_column():
    spec = graph("a b", edge("a", "b", kind=EdgeKind.when, when="amount > > 3"))
    assert "column 10" in only(spec, "expression").message


def test_condition_that_reads_an_unknown_field_is_an_error():
    spec = graph(
        "a b", edge("a", "b", kind=EdgeKind.when, when="amuont > 3"), fields={"amount": {"type": "int"}}
    )
    assert found(spec) == [("unknown-field", "a->b")]
    assert "did you mean 'amount'?" in str(validate(spec)[0])


@pytest.mark.parametrize("text", ["amount > 3", "state.amount > 3", "input.amount", "outcome == 'fail'"])
def test_condition_that_reads_what_is_there_is_fine(text):
    spec = graph("a b", edge("a", "b", kind=EdgeKind.when, when=text), fields={"amount": {"type": "int"}})
    assert validate(spec) == []


def test_subgraph_is_validated_too_and_named():
    inner = graph("x y", start="x")
    problems = validate(graph("a", subgraphs=(inner,)))
    assert [(p.rule, p.node) for p in problems] == [("unreachable", "y")]
    assert "in sub-flow 'g'" in problems[0].message


def long_chain(count: int) -> GraphSpec:
    names = [f"n{i}" for i in range(count)]
    edges = [edge(a, b, kind=EdgeKind.when, when=f"x > {i}") for i, (a, b) in enumerate(pairwise(names))]
    return GraphSpec(
        name="long",
        nodes=tuple(Node(id=n) for n in names),
        edges=tuple(edges),
        start=("n0",),
        fields={"x": {}},
    )


@pytest.mark.covers("PLAIN-TEST-02")
def test_validation_is_linear_in_the_nodes():
    """Ten times the nodes take about ten times the calls, far from the hundred of a quadratic rule."""
    small, large = long_chain(300), long_chain(3_000)
    assert validate(small) == validate(large) == []
    assert operations(lambda: validate(large)) < 12 * operations(lambda: validate(small))


def test_cycle_through_ten_thousand_nodes_is_found():
    spec = long_chain(10_000)
    closed = GraphSpec(
        name="ring",
        nodes=spec.nodes,
        edges=(*spec.edges, edge("n9999", "n1")),
        start=("n0",),
        fields={"x": {}},
    )
    assert [rule for rule, _ in found(closed)] == ["cycle"]
