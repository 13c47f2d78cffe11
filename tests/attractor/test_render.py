"""What is rendered reads as the same pipeline."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings

from holdfast.frontends.dot.document import Pipeline
from holdfast.frontends.dot.lower import lower
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.render import render
from tests.attractor.read import meaning, read
from tests.attractor.texts import LINE, pipelines
from tests.deadlines import HANG

CORPUS = [
    "digraph Empty {}",
    LINE,
    'digraph "Named oddly" { "a b" -> node -> 1 [label="\\\\ \\" \\t"] }',
    "digraph Nested { node [t=1] subgraph { label=Out a subgraph { label=In node [t=2] b; c [t=3] } } b }",
    "digraph Joined { a [x=1] subgraph { label=One a } subgraph { label=Two node [y=2] a } a -> {b c} -> d }",
    'digraph Long { graph [model_stylesheet="* { llm_model: x; }\\n.code { llm_model: y; }", goal="'
    + "word " * 30
    + '"] }',
]


@pytest.mark.covers("ATTRACTOR-PROOF-14")
@pytest.mark.parametrize("source", CORPUS)
def test_rendered_pipeline_reads_as_the_same(source: str):
    pipeline = parse(source).pipeline
    text = render(pipeline)
    again = parse(text).pipeline
    assert meaning(again) == meaning(pipeline)
    assert render(again) == text


BRANCHING = """digraph Branching {
    node [timeout=900s] start [shape=Mdiamond] exit [shape=Msquare]
    fan [shape=component, max_parallel=2] join [shape=tripleoctagon]
    subgraph { label="Loop A" a -> a2 }
    gate [shape=hexagon, human.default_choice=again] check [shape=diamond]
    start -> fan -> a; fan -> b -> join; a2 -> join -> check
    check -> gate [condition="outcome=success"] check -> fan [condition="outcome!=success", loop_restart=true]
    gate -> exit [label="[Y] Yes"] gate -> again [label="[A] Again"] again -> gate
}"""


@pytest.mark.covers("ATTRACTOR-PROOF-14")
@pytest.mark.parametrize("source", [LINE, BRANCHING])
def test_lowered_pipeline_serves_a_text_that_lowers_to_the_same_graph(source: str):
    pipeline = parse(source).pipeline
    graph = lower(pipeline)
    assert isinstance(graph.document, dict)
    again = parse(graph.document["source"]).pipeline
    assert meaning(again) == meaning(pipeline)
    assert lower(again) == graph


@pytest.mark.covers("ATTRACTOR-PROOF-14")
@given(pipelines())
def test_any_pipeline_reads_as_it_was_rendered(pipeline: Pipeline):
    text = render(pipeline)
    again = parse(text).pipeline
    assert meaning(again) == meaning(pipeline)
    assert render(again) == text


@pytest.mark.soak
@given(pipelines())
@settings(settings.get_profile("soak"))
def test_any_pipeline_reads_as_it_was_rendered_for_long(pipeline: Pipeline):
    assert meaning(parse(render(pipeline)).pipeline) == meaning(pipeline)


def test_rendered_pipeline_is_written_as_one_would():
    pipeline = read(
        'node [timeout=900s] subgraph cluster_x { label="Loop A" plan [label="Plan it", shape=box] } '
        'start [shape=Mdiamond] start -> plan [condition="outcome=success"] goal="Ship"'
    )
    assert render(pipeline) == (
        """digraph G {
    graph [goal=Ship]

    subgraph {
        label="loop-a"
        node [timeout=900s]
        plan [label="Plan it", shape=box]
    }
    subgraph {
        node [timeout=900s]
        start [shape=Mdiamond]
    }

    start -> plan [condition="outcome=success"]
}
"""
    )


@pytest.mark.parametrize("source", [LINE, CORPUS[3], CORPUS[4]])
def test_rendered_pipeline_passes_the_strict_grammar(source: str):
    assert parse(render(parse(source).pipeline), strict=True).diagnostics == ()


@pytest.mark.skipif(shutil.which("nop") is None, reason="Graphviz is not installed")
@pytest.mark.parametrize("source", [source for source in CORPUS if source != LINE])
def test_graphviz_reads_what_is_rendered(source: str):
    """But for dotted keys and bare durations, which it does not know."""
    said = subprocess.run(
        ["nop"], input=render(parse(source).pipeline), text=True, capture_output=True, timeout=HANG
    )
    assert (said.returncode, said.stderr) == (0, "")
