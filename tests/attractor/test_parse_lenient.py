"""What files in the wild do against the grammar: read with a warning, refused by `strict`."""

from __future__ import annotations

import pytest

from holdfast.frontends.dot.parse import parse
from tests.attractor.read import leniently

pytestmark = pytest.mark.covers("ATTRACTOR-LANG-01")


@pytest.mark.covers("AT-7")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("a [x=1 y=2]", "no comma"),
        ("a [x=1; y=2]", "a ; between"),
        ("a [\n x=1\n y=2\n z=3]", "no comma"),
        ('a [x="1"y=2]', "no comma"),
        ("a [x=1, y=2,]", "comma before ]"),
    ],
)
def test_separators_of_attributes_may_be_others(body: str, message: str):
    found = leniently(body, message).stages["a"]
    assert (found.integer("x"), found.integer("y")) == (1, 2)


@pytest.mark.covers("AT-5")
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("a-b", "a-b"),
        ("a.b", "a.b"),
        ('"a b"', "a b"),
        ('"plain"', "plain"),
        ("1", "1"),
        ("2nd", "2nd"),
        ("prüfen", "prüfen"),
    ],
)
def test_id_may_have_other_characters_or_be_quoted(written: str, name: str):
    found = leniently(f"{written} [x=1]; {written} -> {written}", "id", name)
    assert found.stages[name].attrs == {"x": 1}
    assert found.links[0].target == name


@pytest.mark.covers("AT-A27")
@pytest.mark.parametrize("word", ["node", "edge", "graph", "subgraph", "digraph", "strict", "Node"])
def test_words_of_the_language_may_be_ids(word: str):
    found = leniently(f"{word} -> b; {word};", word, "keyword")
    assert list(found.stages) == [word, "b"]


@pytest.mark.covers("AT-A27")
@pytest.mark.parametrize("name", ["box", "diamond", "start", "shape", "label", "true", "digraph_x", "end"])
def test_shapes_and_keys_are_ordinary_ids(name: str):
    assert list(parse(f"digraph G {{ {name} -> b; {name} [x=1] }}", strict=True).pipeline.stages) == [
        name,
        "b",
    ]


@pytest.mark.covers("AT-A27")
def test_dotted_key_may_stand_outside_of_brackets():
    assert leniently('tool_hooks.pre = "x"', "dotted", "graph [").attrs == {"tool_hooks.pre": "x"}


def test_ports_are_left_out():
    assert [(one.source, one.target) for one in leniently("a -> b:in:n", "port of b", "1:19").links] == [
        ("a", "b")
    ]
    assert list(leniently("a : p -> b", "port of a").stages) == ["a", "b"]


@pytest.mark.parametrize(
    ("body", "pairs"),
    [
        ("a -> {b c} [w=1]", ["ab", "ac"]),
        ("a -> subgraph s { b; c [x=1] } -> d [w=1]", ["ab", "ac", "bd", "cd"]),
        ("subgraph { a b } -> c [w=1]", ["ac", "bc"]),
        ("a -> { b -> c } [w=1]", ["bc", "ab", "ac"]),
        ("a -> {} [w=1]", []),
    ],
)
def test_group_in_an_edge_is_an_edge_for_each(body: str, pairs: list[str]):
    found = leniently(body, "group in an edge")
    assert [one.source + one.target for one in found.links] == pairs
    assert all(one.weight == 0 and (one.source == "b" or one.integer("w") == 1) for one in found.links)


def test_stage_named_only_in_a_group_of_an_edge_is_not_declared():
    assert not leniently("a -> {b}", "group").stages["b"].declared


def test_braces_without_a_word_are_a_subgraph():
    assert list(leniently("{ rank=same; a; b }", "subgraph { ... }").stages) == ["a", "b"]


@pytest.mark.parametrize(("alias", "key"), [("node_type", "type"), ("llm_prompt", "prompt")])
def test_other_runners_words_are_understood(alias: str, key: str):
    assert leniently(f"a [{alias}=x]", alias, key).stages["a"].attrs == {key: "x"}
    assert leniently(f"a [{alias}=x, {key}=y]", alias).stages["a"].attrs == {key: "y"}
    assert leniently(f"node [{alias}=x] a", alias).stages["a"].attrs == {key: "x"}


@pytest.mark.parametrize(
    ("body", "message", "value"),
    [
        ('a [x="s/\\d+/"]', "not an escape", "s/\\d+/"),
        ('a [x="one\\\ntwo"]', "backslash at the end", "onetwo"),
        ('a [x="one " + "two" + "3"]', "joined with +", "one two3"),
        ("a [x=2026-03-17]", "neither a number", "2026-03-17"),
        ("a [x=1.5h]", "neither a number", "1.5h"),
        ("a [x=größe]", "quotes", "größe"),
        ('a ["x"=1]', "without quotes", 1),
        ("a [y=2] [x=1]", "second block", 1),
        ("a [x=1] # why", "//", 1),
        ("Node [x=1] a", "write node", 1),
        ("SUBGRAPH { a [x=1] }", "write subgraph", 1),
    ],
)
def test_value_or_block_is_understood(body: str, message: str, value: object):
    assert leniently(f"{body}\n", message).stages["a"].attrs["x"] == value


def test_empty_block_is_understood():
    assert leniently("a []", "without attributes").stages["a"].attrs == {}


def test_key_with_other_characters_is_kept():
    assert leniently("a [font-size=3]", "font-size").stages["a"].attrs == {"font-size": 3}


@pytest.mark.parametrize(
    ("source", "path", "name"),
    [
        ("digraph { a }", "", "pipeline"),
        ("digraph { a }", "x/deploy.dot", "deploy"),
        ('digraph "My graph" { a }', "", "My graph"),
        ("Digraph G { a }", "", "G"),
    ],
)
def test_name_may_be_absent_or_quoted(source: str, path: str, name: str):
    found = parse(source, path=path)
    assert found.pipeline.name == name
    assert [one.rule for one in found.diagnostics] == ["syntax_lenient"]


def test_warnings_come_in_the_order_of_the_text():
    found = parse('digraph G { "a" [x=1 y=2]\n "a" -> {b}\n b:p -> c }')
    assert [(one.place.line, one.place.column) for one in found.diagnostics] == [
        (1, 13),
        (1, 22),
        (2, 9),
        (3, 3),
    ]


def test_same_leniency_is_reported_once_a_line():
    found = parse("digraph G { {{{a}}}\n {b} }")
    assert [one.place.line for one in found.diagnostics] == [1, 2]
