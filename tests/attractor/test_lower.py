"""Pipelines as graphs: what is stored, how it is named, and where branches end."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import PipelineInvalidError
from holdfast.frontends.dot.lower import DIALECT, context_of, edge_ids, lower
from holdfast.frontends.dot.parse import parse
from holdfast.model.fingerprint import decode_graph, encode_graph, graph_fingerprint
from holdfast.model.graph import END, GraphSpec, InDoubt, Node, NodeKind
from holdfast.model.validate import validate
from holdfast.types.status import Effect

ENDS = "start [shape=Mdiamond]; end [shape=Msquare];"


def lowered(body: str) -> GraphSpec:
    return lower(parse(f"digraph p {{ {ENDS} {body} }}").pipeline)


def node(spec: GraphSpec, name: str) -> Node:
    return next(each for each in spec.nodes if each.id == name)


def names(spec: GraphSpec) -> set[str]:
    return {each.id for each in spec.nodes}


def test_a_graph_serves_its_document_and_reads_back_as_the_same_version() -> None:
    spec = lowered('start -> a -> end; graph [goal="it"]')
    assert spec.document
    assert spec.document["dialect"] == DIALECT
    again = decode_graph(encode_graph(spec))
    assert graph_fingerprint(again) == graph_fingerprint(spec)
    assert lower(parse(spec.document["source"]).pipeline) == spec


def test_the_same_pipeline_is_the_same_version_however_it_was_written() -> None:
    one = lowered('start -> a -> end; a [label="A", timeout=900s]')
    other = lowered('\n/* as before */ a [timeout="900s", label=A]\nstart -> a\na -> end')
    assert node(one, "a") == node(other, "a")
    assert graph_fingerprint(one) != graph_fingerprint(lowered("start -> b -> end"))


def test_every_lowered_graph_is_valid_for_the_core() -> None:
    spec = lowered(
        """fan [shape=component]; join [shape=tripleoctagon]; start -> fan; fan -> a -> join; fan -> b;
        b -> join; join -> gate; gate [shape=diamond];
        gate -> end [condition="outcome=success && context.x!=y"];
        gate -> a2 [loop_restart=true]; a2 -> end"""
    )
    assert [problem for problem in validate(spec) if problem.severity == "error"] == []


@pytest.mark.parametrize(
    ("attributes", "effect", "timeout"),
    [
        ("shape=box, timeout=900s", Effect.read, 900_000_000),
        ("shape=hexagon, timeout=900s", Effect.read, None),
        ('shape=parallelogram, timeout="300"', Effect.read, 300_000_000),
        ("shape=diamond", Effect.pure, None),
        ("type=mine", Effect.external, None),
        ("type=mine, idempotent=true", Effect.read, None),
        ("type=mine, effect=write", Effect.write, None),
    ],
)
def test_stages_have_the_effects_and_time_limits_of_their_kinds(
    attributes: str, effect: Effect, timeout: int | None
) -> None:
    pipeline = parse(f"digraph p {{ {ENDS} start -> a -> end; a [{attributes}] }}").pipeline
    made = node(lower(pipeline, known_types=("mine", "start", "exit")), "a")
    assert (made.effect, made.timeout, made.script) == (effect, timeout, True)


def test_a_stage_s_in_doubt_policy_is_taken_over() -> None:
    spec = lowered("start -> a -> b -> end; a [in_doubt=retry]; graph [in_doubt=fail]")
    assert (node(spec, "a").in_doubt, node(spec, "b").in_doubt, spec.in_doubt) == (
        InDoubt.retry,
        None,
        InDoubt.fail,
    )


def test_the_context_begins_with_every_attribute_of_the_graph() -> None:
    pipeline = parse('digraph p { graph [goal="it", budget_time=5m, n=3]; a }').pipeline
    assert context_of(pipeline) == {"graph.goal": "it", "graph.budget_time": "5m", "graph.n": 3}
    assert context_of(parse("digraph p { a }").pipeline) == {"graph.goal": ""}


def test_edges_to_the_same_stage_have_ids_of_their_own() -> None:
    spec = lowered('start -> a [label=x]; start -> a [label=y]; a -> end [condition=" "]')
    assert [edge.id for edge in spec.edges] == ["start->a", "start->a#2", "a->end"]
    assert spec.edges[2].when is None
    assert list(edge_ids(parse("digraph p { a -> b -> c; a -> b }").pipeline)) == ["a->b", "b->c", "a->b#2"]


# ---------------------------------------------------------------------- branches


def fan(body: str) -> tuple[GraphSpec, GraphSpec, Any]:
    """The graph, the branches of `fan`, and what its node says of them."""
    spec = lowered(f"fan [shape=component]; start -> fan; {body}")
    made = node(spec, "fan")
    assert made.kind is NodeKind.parallel
    return spec, next(inner for inner in spec.subgraphs if inner.name == "fan"), made.parallel


@pytest.mark.covers("AT-A21")
def test_branches_go_up_to_their_fan_in_and_one_edge_leads_there() -> None:
    spec, inside, parallel = fan(
        "join [shape=tripleoctagon]; fan -> a -> b -> join; fan -> c -> join; join -> end"
    )
    assert names(spec) == {"start", "fan", "join", "end"}
    assert names(inside) == {"a", "b", "c"}
    assert (parallel.starts, parallel.edges) == (("a", "c"), ("fan->a", "fan->c"))
    assert [(e.source, e.target) for e in spec.edges if e.source == "fan"] == [("fan", "join")]
    assert {(e.source, e.target, e.leads) for e in inside.edges if e.target == END} == {
        ("b", END, "join"),
        ("c", END, "join"),
    }


@pytest.mark.covers("AT-A21")
@pytest.mark.parametrize(
    ("body", "join", "inside"),
    [
        ("fan -> a -> m; fan -> b -> m; m -> end", "m", {"a", "b"}),
        ("fan -> a; fan -> b; a -> x; a -> y; x -> m; y -> m; b -> m; m -> end", "m", {"a", "b", "x", "y"}),
        ("fan -> a -> end; fan -> b -> c -> end", "end", {"a", "b", "c"}),
        ("fan -> a -> m; fan -> b -> m; a -> end; m -> end", "end", {"a", "b", "m"}),
        ("fan -> a -> b -> m; fan -> m; m -> end", "m", {"a", "b"}),
        ("fan -> a; fan -> b; start -> end", "", {"a", "b"}),
        ("f [shape=tripleoctagon]; fan -> a -> m; fan -> b -> m; m -> f -> end", "f", {"a", "b", "m"}),
    ],
)
def test_branches_without_a_common_fan_in_end_where_all_ways_meet(
    body: str, join: str, inside: set[str]
) -> None:
    spec, found, _ = fan(body)
    assert [e.target for e in spec.edges if e.source == "fan"] == ([join] if join else [])
    assert names(found) == inside


@pytest.mark.covers("AT-A21", "AT-193")
def test_fan_outs_inside_branches_have_sub_graphs_inside_theirs() -> None:
    _, inside, _ = fan(
        """join [shape=tripleoctagon]; in [shape=component]; meet [shape=tripleoctagon]; fan -> in;
        fan -> b -> join; in -> x -> meet; in -> y -> meet; meet -> join; join -> end"""
    )
    assert names(inside) == {"in", "meet", "b"}
    (inner,) = inside.subgraphs
    assert (inner.name, names(inner)) == ("in", {"x", "y"})


def test_a_fan_out_whose_branches_go_to_the_join_around_it_ends_its_own_branch() -> None:
    _, inside, _ = fan(
        """join [shape=tripleoctagon]; in [shape=component]; fan -> in; fan -> b -> join;
        in -> x -> join; in -> y -> join; join -> end"""
    )
    assert [(e.target, e.leads) for e in inside.edges if e.source == "in"] == [(END, "join")]


def test_an_edge_back_to_before_the_fan_out_ends_its_branch() -> None:
    spec, inside, _ = fan(
        """start -> plan -> fan; join [shape=tripleoctagon]; fan -> a -> join; fan -> b -> join;
        a -> plan [condition="outcome=fail"]; b -> fan [label=x]; join -> end; join -> plan [label=again]"""
    )
    assert names(inside) == {"a", "b"}
    assert {(e.source, e.leads) for e in inside.edges if e.target == END} == {
        ("a", "join"),
        ("a", "plan"),
        ("b", "join"),
        ("b", "fan"),
    }
    assert names(spec) == {"start", "plan", "fan", "join", "end"}


def test_a_fan_out_over_itself_is_lowered_in_the_end() -> None:
    spec = lowered(
        "a [shape=component]; b [shape=component]; start -> a; a -> b; a -> b; b -> a; b -> end; b -> b"
    )
    assert {"start", "a"} <= names(spec)


def test_fan_outs_that_all_lead_into_one_another_are_refused() -> None:
    names = [f"f{i}" for i in range(12)]
    ways = " ".join(f"{a} -> {b};" for a in names for b in names if a != b)
    shapes = " ".join(f"{name} [shape=component];" for name in names)
    with pytest.raises(PipelineInvalidError, match="lead into one another"):
        lowered(f"{shapes} start -> f0; {ways} f11 -> end")


def test_ten_thousand_stages_and_a_hundred_fan_outs_are_lowered_soon() -> None:
    chain = " ".join(f"s{i} -> s{i + 1};" for i in range(10_000))
    fans = " ".join(
        f"f{i} [shape=component]; j{i} [shape=tripleoctagon]; f{i} -> x{i} -> j{i}; f{i} -> y{i} -> j{i};"
        + (f" j{i} -> f{i + 1};" if i < 99 else " j99 -> end;")
        for i in range(100)
    )
    spec = lowered(f"start -> s0; {chain} s10000 -> f0; {fans}")
    assert len(spec.nodes) == 10_003 + 200
