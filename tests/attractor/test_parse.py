"""The grammar of pipelines: what it takes, and what it comes to."""

from __future__ import annotations

import pytest

from holdfast.frontends.dot.document import SourceLocation
from holdfast.frontends.dot.parse import parse
from holdfast.frontends.dot.values import Duration, Value
from tests.attractor.read import at, faults, read, stage, told


@pytest.mark.covers("AT-1")
def test_graph_keeps_its_name():
    assert parse("digraph Release_2 { }", strict=True).pipeline.name == "Release_2"


@pytest.mark.covers("AT-2")
@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("graph G { a -> b }", 1),
        ("digraph G { a -- b }", 15),
        ("digraph G { a--b }", 14),
        ("digraph G { a -> b -- c }", 20),
        ('digraph G { "a" -- b }', 17),
    ],
)
def test_undirected_graph_is_refused(source: str, column: int):
    (found,) = faults(source)
    assert at(found) == (1, column)
    told(found, "directed" if "b -- c" not in source else "->")


@pytest.mark.covers("AT-3")
def test_strict_graph_is_refused():
    (found,) = faults("strict digraph G { a }")
    told(found, "strict", "1:1")


@pytest.mark.covers("AT-4")
def test_second_graph_in_a_file_is_refused():
    (found,) = faults("digraph G { a }\n\ndigraph H { b }")
    told(found, "3:1", "second graph", "its own file")


@pytest.mark.covers("AT-5")
def test_id_has_letters_digits_and_underscores():
    assert list(read("_a1; B_2 -> c").stages) == ["_a1", "B_2", "c"]


@pytest.mark.covers("AT-6")
@pytest.mark.parametrize("label", ["<b>", "<<table><tr/></table>>", "<a <i>b</i> c>"])
def test_html_label_is_refused(label: str):
    (found,) = faults(f"digraph G {{ a [label={label}, shape=box]; b [x=1] }}")
    told(found, "1:22", "HTML", "quotes")


@pytest.mark.covers("AT-8")
def test_comment_is_left_out():
    assert list(read("a // b -> c\n /* d [x=1]\n */ -> /**/ e /***/").stages) == ["a", "e"]


@pytest.mark.covers("AT-9")
def test_comment_in_a_string_is_text():
    assert stage('a [prompt="see http://x /* not */ // this"]').prompt == "see http://x /* not */ // this"


@pytest.mark.covers("AT-10")
@pytest.mark.parametrize("end", ["", ";", ";;"])
def test_semicolon_is_optional_everywhere(end: str):
    gap = f"{end} " if end else "\n"
    body = gap.join(
        [
            "graph [goal=x]",
            "node [t=1]",
            "edge [w=1]",
            "k = v",
            "subgraph s { label=l",
            "b",
            "}",
            "a [x=1]",
            "a -> b",
        ]
    )
    found = read(body + gap)
    assert (found.goal, found.text("k"), found.links[0].integer("w")) == ("x", "v", 1)
    assert found.stages["b"].classes == ("l",)


@pytest.mark.covers("AT-11")
def test_attributes_may_span_lines():
    assert stage('a [\n  label="A",\n\n  shape\n=\nhexagon\n]').shape == "hexagon"


@pytest.mark.covers("AT-12")
def test_escapes_are_resolved_once():
    assert stage(r'a [x="\"q\" \\n\n\t\\"]').text("x") == '"q" \\n\n\t\\'


@pytest.mark.parametrize(
    ("written", "value"),
    [
        pytest.param("42", 42, marks=pytest.mark.covers("AT-13")),
        pytest.param("-1", -1, marks=pytest.mark.covers("AT-13")),
        pytest.param("0", 0, marks=pytest.mark.covers("AT-13")),
        pytest.param(".5", 0.5, marks=pytest.mark.covers("AT-14")),
        pytest.param("-3.14", -3.14, marks=pytest.mark.covers("AT-14")),
        pytest.param("-.25", -0.25, marks=pytest.mark.covers("AT-14")),
        pytest.param("true", True, marks=pytest.mark.covers("AT-15")),
        pytest.param("false", False, marks=pytest.mark.covers("AT-15")),
        pytest.param('"true"', "true", marks=pytest.mark.covers("AT-15")),
        pytest.param("250ms", Duration("250ms", 250_000), marks=pytest.mark.covers("AT-16")),
        pytest.param("900s", Duration("900s", 900_000_000), marks=pytest.mark.covers("AT-16")),
        pytest.param("15m", Duration("15m", 900_000_000), marks=pytest.mark.covers("AT-16")),
        pytest.param("2h", Duration("2h", 7_200_000_000), marks=pytest.mark.covers("AT-16")),
        pytest.param("1d", Duration("1d", 86_400_000_000), marks=pytest.mark.covers("AT-16")),
        pytest.param("gpt-5.2", "gpt-5.2", marks=pytest.mark.covers("AT-17")),
        pytest.param("summary:high", "summary:high", marks=pytest.mark.covers("AT-17")),
        pytest.param("wait.human", "wait.human", marks=pytest.mark.covers("AT-17")),
        pytest.param("a--b", "a--b", marks=pytest.mark.covers("AT-17")),
        pytest.param('""', "", marks=pytest.mark.covers("AT-12")),
        pytest.param('"42"', "42", marks=pytest.mark.covers("AT-13")),
    ],
)
def test_value_has_the_type_that_it_is_written_as(written: str, value: Value):
    inside = stage(f"a [x={written}]").attrs["x"]
    above = read(f"k = {written}").attrs["k"]
    assert (type(inside), inside) == (type(above), above) == (type(value), value)


@pytest.mark.covers("AT-18", "AT-A27")
def test_key_may_have_dots():
    found = stage("a [human.default_choice=fix, tool_hooks.pre.x=1, shape=box]")
    assert found.attrs == {"human.default_choice": "fix", "tool_hooks.pre.x": 1, "shape": "box"}


@pytest.mark.covers("AT-19")
def test_graph_block_gives_attributes_of_the_graph():
    found = read('graph [goal="Ship it", default_max_retries=3]')
    assert (found.goal, found.integer("default_max_retries")) == ("Ship it", 3)


@pytest.mark.covers("AT-20")
def test_last_of_block_and_assignment_wins():
    found = read("graph [goal=one, label=kept] goal=two; k=1 graph [k=2]")
    assert found.attrs == {"goal": "two", "label": "kept", "k": 2}


@pytest.mark.covers("AT-27")
def test_chain_is_an_edge_between_each_two():
    found = read('a -> b -> c [label="next", weight=2]')
    assert [(one.source, one.target, one.label, one.weight) for one in found.links] == [
        ("a", "b", "next", 2),
        ("b", "c", "next", 2),
    ]


@pytest.mark.covers("AT-28", "AT-29")
def test_stage_may_follow_its_edge_and_be_named_again():
    found = read("a -> b; b [x=1, y=1]; b [y=2, z=3]; b")
    assert found.stages["b"].attrs == {"x": 1, "y": 2, "z": 3}
    assert found.stages["b"].explicit == {"x", "y", "z"}
    assert list(found.stages) == ["a", "b"]


@pytest.mark.covers("AT-30")
def test_edges_between_the_same_two_are_all_kept():
    found = read("a -> b [label=yes] a -> b [label=no] a -> b [label=yes]")
    assert [one.label for one in found.outgoing["a"]] == ["yes", "no", "yes"]


@pytest.mark.covers("AT-31")
def test_stage_without_label_and_shape_is_a_box_with_its_id():
    assert (stage("a").label, stage("a").shape) == ("a", "box")
    assert (stage("a [label=A, shape=hexagon]").label, stage("a [shape=hexagon]").shape) == ("A", "hexagon")


@pytest.mark.covers("AT-33", "AT-34")
def test_attribute_that_means_nothing_is_kept():
    found = read('rankdir=LR; bgcolor="#fff"; a [color=red, my.own="x"] a -> b [style=dotted]')
    assert found.attrs == {"rankdir": "LR", "bgcolor": "#fff"}
    assert found.stages["a"].attrs == {"color": "red", "my.own": "x"}
    assert found.links[0].attrs == {"style": "dotted"}


@pytest.mark.covers("AT-35", "AT-A28", "AT-A29")
@pytest.mark.parametrize("quote", ["", '"'])
def test_quoted_value_reads_like_a_bare_one(quote: str):
    def of(value: str):
        return stage(f"a [x={quote}{value}{quote}]")

    assert of("3").integer("x") == 3
    assert of("true").flag("x") is True
    assert of("false").flag("x", default=True) is False
    assert of("900s").microseconds("x") == 900_000_000
    assert of("300").microseconds("x") == 300_000_000


@pytest.mark.covers("AT-A29")
def test_value_that_is_no_boolean_is_false():
    assert stage('a [goal_gate="outcome=success"]').flag("goal_gate") is False


@pytest.mark.parametrize("value", ['"three"', '"1_000"', "true", "5s", "2.5"])
def test_value_that_is_no_number_reads_as_the_default(value: str):
    assert stage(f"a [x={value}]").integer("x", 7) == 7


@pytest.mark.covers("AT-A4")
def test_stage_that_only_edges_name_is_a_box_and_known_as_such():
    found = read("a; a -> b")
    assert found.stages["b"].shape == "box"
    assert (found.stages["a"].declared, found.stages["b"].declared) == (True, False)


@pytest.mark.covers("ATTRACTOR-LANG-02")
def test_everything_knows_its_place():
    found = parse("digraph G {\n  k = 1\n  a [x=1,\n     y=2]\n  a -> b [w=1]\n}").pipeline
    assert found.places == {"k": SourceLocation(2, 3)}
    assert found.stages["a"].place == SourceLocation(3, 3)
    assert found.stages["a"].places == {"x": SourceLocation(3, 6), "y": SourceLocation(4, 6)}
    assert found.stages["b"].place == SourceLocation(5, 8)
    assert (found.links[0].place, found.links[0].places) == (
        SourceLocation(5, 3),
        {"w": SourceLocation(5, 11)},
    )


def test_text_may_begin_with_a_byte_order_mark_and_have_any_line_ends():
    found = parse(b'\xef\xbb\xbfdigraph G {\r\n a [label="\xc3\xa4"]\r\n b }', strict=True).pipeline
    assert (found.stages["a"].label, found.stages["b"].place) == ("ä", SourceLocation(3, 2))


@pytest.mark.covers("ATTRACTOR-LANG-03")
def test_attributes_of_both_versions_are_kept():
    found = read(
        "graph [default_max_retry=50, default_max_retries=2] p [join_policy=k_of_n, error_policy=fail_fast]"
    )
    assert found.attrs == {"default_max_retry": 50, "default_max_retries": 2}
    assert found.stages["p"].attrs == {"join_policy": "k_of_n", "error_policy": "fail_fast"}
