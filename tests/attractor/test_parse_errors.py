"""Texts that are no pipelines: every fault at once, each with its place and what to change."""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError, PipelineSyntaxError
from holdfast.frontends.dot.parse import parse
from tests.attractor.read import at, faults, told

pytestmark = pytest.mark.covers("ATTRACTOR-LANG-02")


@pytest.mark.parametrize(
    ("source", "place", "parts"),
    [
        ("", (1, 1), ["no pipeline", "digraph NAME"]),
        ("  // only this\n", (2, 1), ["no pipeline"]),
        ("hello", (1, 1), ["begins with digraph"]),
        ("digraph G a -> b", (1, 11), ["{ is missing"]),
        ("digraph = { }", (1, 9), ["name is missing"]),
        ("digraph G { a", (1, 11), ["{ is not closed", "}"]),
        ("digraph G {\n subgraph x { a\n}", (1, 11), ["{ is not closed"]),
        ("digraph G {\n subgraph x { a\n", (2, 13), ["subgraph is not closed"]),
        ("digraph G { a } }", (1, 17), ["after the end"]),
        ("digraph G {\n a [x=1\n", (2, 4), ["[ is not closed", "]"]),
        ("digraph G {\n a [x=1\n b -> c }", (2, 4), ["[ is not closed"]),
        ('digraph G {\n a [x="one\n two] }', (2, 7), ["string is not closed", '"']),
        ("digraph G { a\n /* more }", (2, 2), ["comment is not closed", "*/"]),
        ("digraph G { a -> }", (1, 18), ["id is missing"]),
        ("digraph G { a -> -> b }", (1, 18), ["id is missing"]),
        ("digraph G { a -> b, c }", (1, 19), ["new statement"]),
        ("digraph G { a, b }", (1, 14), ["comma between stages"]),
        ("digraph G { a-->b }", (1, 13), ["->"]),
        ("digraph G { a [bold] }", (1, 16), ["bold has no value", "bold=value"]),
        ("digraph G { a [label:x] }", (1, 16), ["write label=x"]),
        ('digraph G { a [label:"x"] }', (1, 16), ["write label="]),
        ("digraph G { a [x=] }", (1, 18), ["value is missing"]),
        ("digraph G { a [=1] }", (1, 16), ["attribute cannot start with ="]),
        ("digraph G { a [x=@file.md] }", (1, 18), ["@file.md", "double quotes"]),
        ("digraph G { a [x='one two', y=1] }", (1, 18), ["double quotes"]),
        ("digraph G { a [x=\u201cone two\u201d] }", (1, 18), ["double quotes"]),
        ("digraph G { a [x=#fff] }", (1, 18), ["double quotes"]),
        ('digraph G { a [x="1" + 2] }', (1, 24), ["after +"]),
        ('digraph G { "" -> a }', (1, 13), ["id is empty"]),
        ('digraph G { "../up" -> a }', (1, 13), ["cannot be an id", "folder"]),
        (f"digraph G {{ {'x' * 201} }}", (1, 13), ["201", "200"]),
        (f"digraph G {{ a [x={'9' * 401}] }}", (1, 18), ["401", "quotes"]),
        ("digraph G { digraph H { } }", (1, 13), ["inside the pipeline"]),
        ("digraph G { subgraph x; }", (1, 23), ["{ is missing"]),
        ('digraph G { a [x="say "yes" now", y=1] }', (1, 23), ["text ends at this quote", 'write \\"']),
        ("hello $there\n<b>", (1, 1), ["begins with digraph"]),
        ("digraph G { ] }", (1, 13), ["start with ]"]),
    ],
)
def test_fault_is_reported_with_place_and_repair(source: str, place: tuple[int, int], parts: list[str]):
    (found,) = faults(source)
    assert at(found) == place
    told(found, *parts)


def test_all_faults_of_a_file_are_reported_at_once():
    source = """digraph G {
        a [label=<b>x</b>, shape=box]
        b -- c
        d [x=1
           y='two',
           z=3]
        subgraph s { e -> ; f }
        g [ok=true]
        h [bold]
    }
    trailing"""
    found = faults(source, path="release.dot")
    assert [one.place.line for one in found] == [2, 3, 5, 7, 9, 11]
    assert all(one.path == "release.dot" and one.place.column for one in found)


def test_error_lists_the_faults_and_keeps_the_warnings():
    with pytest.raises(PipelineSyntaxError) as caught:
        parse("digraph G { a [x=1 y=2]\n b -- c\n d [bold] }", path="p.dot")
    assert isinstance(caught.value, HoldfastError)
    assert str(caught.value).splitlines() == [
        "p.dot:2:4: error: edges of a pipeline are directed (write -> instead of --) [syntax]",
        "p.dot:3:5: error: the attribute bold has no value (write bold=value) [syntax]",
    ]
    assert [one.severity for one in caught.value.facts["diagnostics"]] == ["warning", "error", "error"]  # type: ignore[attr-defined]


def test_faults_without_end_are_cut_short():
    source = "digraph G {\n" + "a -- b\n" * 1000 + "}"
    assert len(faults(source)) == 20
    with pytest.raises(PipelineSyntaxError, match="Only the first"):
        parse(source)


@pytest.mark.covers("ATTRACTOR-BAD-01")
@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", (1, 1), "not UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00\x00", (1, 8), "NUL"),
        (b'digraph G {\n a [label="caf\xe9"] }', (2, 15), "0xe9"),
        ("digraph G { a }".encode("utf-16"), (1, 1), "not UTF-8"),
        ("digraph G { a }".encode("utf-16-le"), (1, 2), "NUL"),
        (b"digraph G {\n a\x00 }", (2, 3), "NUL"),
    ],
)
def test_binary_file_is_one_fault(data: bytes, place: tuple[int, int], message: str):
    (found,) = faults(data)
    assert at(found) == place
    told(found, message, "UTF-8")


@pytest.mark.covers("ATTRACTOR-BAD-02")
@pytest.mark.parametrize("piece", ["x", "line\n", '\\"\\\\'])
def test_attribute_of_ten_megabytes_is_read(piece: str):
    text = piece * (10_000_000 // len(piece))
    found = parse(f'digraph G {{ a [prompt="{text}"] }}', strict=True).pipeline
    assert len(found.stages["a"].prompt) == len(text) / (2 if "\\" in text else 1)


@pytest.mark.covers("ATTRACTOR-BAD-02")
def test_more_than_a_pipeline_may_be_is_one_fault(monkeypatch: pytest.MonkeyPatch):
    (found,) = faults("a" * (32 * 1024 * 1024 + 1))
    told(found, "33,554,432", "@file")
    monkeypatch.setattr("holdfast.frontends.dot.parse.LARGEST", 1000)
    (found,) = faults(b"\xff" * 4001)
    told(found, "1,000", "@file")


@pytest.mark.parametrize(
    "body",
    [
        "a" + " : b" * 5_000,
        "a" + " []" * 5_000 + " [x=1]",
        'a [x="1"' + '+"1"' * 5_000 + "]",
        "a -> " * 5_000 + "a",
        "a [" + "".join(f"k{n}=1 " for n in range(5_000)) + "]",
        ";" * 5_000 + "a",
        "subgraph { } " * 5_000 + "a",
    ],
    ids=range(7),
)
def test_statement_of_any_length_is_read(body: str):
    assert list(parse(f"digraph G {{ {body} }}" + ";" * 5_000).pipeline.stages) == ["a"]


@pytest.mark.parametrize(
    "source",
    [
        "digraph G " + "{" * 10_000,
        "digraph G {" + "a -> {" * 10_000,
        "digraph G {" + "subgraph s {" * 10_000 + "}" * 10_001,
        "{" * 10_000,
        "digraph G { a " + "[" * 10_000,
        "digraph G { a [x=" + "<" * 100_000 + "] }",
        "digraph G { a [x=" + '"' * 100_001 + "] }",
        "digraph G {" + "/*" * 100_000,
        "digraph G {" + "{a b c d e f g h}->" * 50_000 + "z }",
        "digraph G {" + "".join(f"node [k{n}=1] n{n};" for n in range(5_000)) + "}",
        "digraph G {" + "".join(f"subgraph {{ node [k{n}=1] a }}" for n in range(20_000)) + "}",
        "digraph G {" + "".join(f"subgraph {{ label=k{n}; a }}" for n in range(20_000)) + "}",
    ],
    ids=range(12),
)
def test_hostile_text_is_refused_soon(source: str):
    # What is not soon meets the test's time limit.
    assert faults(source)
