"""Defaults and subgraphs: what a stage takes from where it stands."""

from __future__ import annotations

import pytest

from tests.attractor.read import leniently, read, stage


@pytest.mark.covers("AT-21")
def test_defaults_are_for_stages_that_follow():
    found = read("a; node [t=1] b; node [u=2] c; a [x=1]")
    assert [one.attrs for one in found.stages.values()] == [{"x": 1}, {"t": 1}, {"t": 1, "u": 2}]


@pytest.mark.covers("AT-22")
def test_attribute_of_a_stage_beats_the_default():
    found = read("node [shape=box, t=1] start [shape=Mdiamond]").stages["start"]
    assert (found.attrs, found.explicit) == ({"shape": "Mdiamond", "t": 1}, {"shape"})


@pytest.mark.covers("AT-21", "AT-28")
def test_stage_takes_the_defaults_of_its_statement_not_of_an_edge_before():
    assert stage("x -> a; node [t=1] a").attrs == {"t": 1}


@pytest.mark.covers("AT-23")
def test_edge_defaults_are_for_edges_that_follow():
    found = read(
        "a -> b edge [weight=5, label=x] b -> c; c -> d [weight=1]; subgraph { edge [label=y] d -> e } e -> f"
    )
    assert [(one.weight, one.label) for one in found.links] == [
        (0, ""),
        (5, "x"),
        (1, "x"),
        (5, "y"),
        (5, "x"),
    ]


@pytest.mark.covers("AT-24")
def test_defaults_leak_into_subgraphs_and_not_out():
    found = read("node [t=1] subgraph { node [u=2] a; subgraph { node [t=3] b } c } d")
    assert [one.attrs for one in found.stages.values()] == [
        {"t": 1, "u": 2},
        {"t": 3, "u": 2},
        {"t": 1, "u": 2},
        {"t": 1},
    ]


@pytest.mark.covers("AT-25")
def test_subgraphs_are_flattened():
    found = read("subgraph cluster_x { a -> b; subgraph { c [x=1] } } b -> c")
    assert list(found.stages) == ["a", "b", "c"]
    assert [(one.source, one.target) for one in found.links] == [("a", "b"), ("b", "c")]


@pytest.mark.covers("AT-26")
@pytest.mark.parametrize(
    ("label", "classes"),
    [
        ("Loop A", ("loop-a",)),
        ("Review (2nd), final!", ("review-2nd-final",)),
        ("UPPER_case", ("uppercase",)),
        ("a - b", ("a---b",)),
        ("!?", ()),
    ],
)
def test_class_comes_from_the_label_of_the_subgraph(label: str, classes: tuple[str, ...]):
    found = stage(f'subgraph cluster_x {{ a; label="{label}" }}')
    assert (found.classes, found.derived) == (classes, classes)


@pytest.mark.covers("AT-26")
def test_derived_classes_follow_the_given_ones_outermost_first():
    found = stage('subgraph { label=Out subgraph { graph [label="In Ner"] a [class="x, y"] } }')
    assert (found.classes, found.derived) == (("x", "y", "out", "in-ner"), ("out", "in-ner"))


@pytest.mark.covers("AT-26")
def test_edge_does_not_move_a_stage_into_its_subgraph():
    assert stage("a; subgraph { label=In a -> b }").classes == ()
    assert stage("subgraph { label=In a -> b }", "b").classes == ("in",)
    assert stage("subgraph { label=In x -> a } a").classes == ()


@pytest.mark.covers("AT-24", "AT-26", "AT-29")
def test_stage_named_again_in_a_subgraph_joins_it():
    found = stage("node [t=1] a [x=1]; subgraph { label=In node [t=2, u=2] a }")
    assert (found.classes, found.attrs) == (("in",), {"t": 1, "u": 2, "x": 1})


@pytest.mark.covers("AT-32", "AT-A26")
@pytest.mark.parametrize(
    ("given", "classes"),
    [
        ("code,critical", ("code", "critical")),
        (" a , b ,, ", ("a", "b")),
        ("Big_One", ("Big_One",)),
        ("a,a", ("a",)),
    ],
)
def test_class_attribute_is_split_and_trimmed(given: str, classes: tuple[str, ...]):
    assert stage(f'a [class="{given}"]').classes == classes


def test_graph_attribute_in_a_subgraph_is_informed_of():
    found = leniently("subgraph { goal=x; a }", "goal", "has no effect in a subgraph")
    assert found.attrs == {}
