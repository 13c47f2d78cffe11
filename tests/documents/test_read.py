"""Reading and writing: scalars, refused texts, places, limits, the round trip."""

# ruff: noqa: E501

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.frontends.document import limits, yaml_text
from holdfast.frontends.document.dump import dump_data, dump_document
from holdfast.frontends.document.limits import MAX_DOCUMENT_VALUES
from holdfast.frontends.document.read import format_of, read_data, read_sent, read_text
from holdfast.frontends.document.source import FORMATS, Format
from holdfast.frontends.document.yaml_text import places_of_yaml, read_yaml
from holdfast.model.fingerprint import graph_fingerprint
from tests.documents.rule_examples import EXAMPLES, GOOD, flow
from tests.documents.run import compiled, graph, problems, site_of


def rules_of(raw: bytes | str, form: Format) -> list[tuple[str, int | None, int | None]]:
    return [(each.rule, each.line, each.column) for each in read_text(raw, form).problems()]


@pytest.mark.covers("CV-10")
def test_scalars_are_those_of_yaml_1_2_core() -> None:
    found = read_yaml(
        "a: no\nb: 12:30:00\nc: 2026-01-01\nd: 0o17\ne: 017\nf: 0x1F\ng: 1e3\nh: 1_000\ni: on\nj: ~\nk:\n"
        "l: true\nm: 'true'\nn: .5\no: 1\np: 1.0\nq: '1'\nr: =\ns: <<\n"
    )
    assert found == {
        "a": "no", "b": "12:30:00", "c": "2026-01-01", "d": 15, "e": 17, "f": 31, "g": 1000.0, "h": "1_000",
        "i": "on", "j": None, "k": None, "l": True, "m": "true", "n": 0.5, "o": 1, "p": 1.0, "q": "1",
        "r": "=", "s": "<<",
    }  # fmt: skip
    assert type(found["o"]) is int
    assert type(found["p"]) is float


@pytest.mark.covers("CV-11")
@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("a: 1\nb: !x 2", "yaml", ("tag", 2, 4)),
        ("a: 1\na: 2", "yaml", ("duplicate-key", 2, 1)),
        ('{"a": 1,\n "a": 2}', "json", ("duplicate-key", 2, 2)),
        ('{"a": {"b": 1, "b": 2}}', "json", ("duplicate-key", 1, 16)),
        ("1: a", "yaml", ("key-text", 1, 1)),
        ("? [a]\n: b", "yaml", ("key-text", 1, 3)),
        ("a: 1\n---\nb: 2", "yaml", ("several-documents", 2, 1)),
        (b"a: \xff", "yaml", ("utf-8", 1, 4)),
        (b'{"a":\n "\xff"}', "json", ("utf-8", 2, 3)),
        ("a: .nan", "yaml", ("number", 1, 4)),
        ("a: -.inf", "yaml", ("number", 1, 4)),
        ('{"a": NaN}', "json", ("number", 1, 7)),
        ('{"a": [1, Infinity]}', "json", ("number", 1, 11)),
        ('a: "\\ud83d"', "yaml", ("surrogate", 1, 4)),
        ("a: &x [*x]", "yaml", ("alias", 1, 8)),
        ("a: *x", "yaml", ("alias", 1, 4)),
        ("a: [", "yaml", ("yaml", 2, 1)),
        ("{", "json", ("json", 1, 2)),
    ],
)
def test_text_is_refused_with_its_place(
    text: bytes | str, form: Format, expected: tuple[str, int, int]
) -> None:
    assert expected in rules_of(text, form)


@pytest.mark.covers("CV-11")
def test_surrogate_pairs_are_joined_and_halves_refused_in_json_too() -> None:
    assert read_yaml('a: "\\ud83d\\ude00 x"') == {"a": "\U0001f600 x"}
    raw = json.dumps({"holdfast": "1.0", "name": "n", "nodes": [], "description": "\ud83d"})
    assert ("surrogate", 1, 62) in rules_of(raw, "json")


@pytest.mark.covers("CV-11")
def test_escapes_of_surrogates_are_read_by_the_same_parser_and_only_in_double_quotes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyYAML's own parser is ten times slower: who writes such an escape must not choose it."""
    if hasattr(yaml, "CSafeLoader"):
        monkeypatch.delattr(yaml, "SafeLoader")
    text = r"""
a: "\ud83d\ude00 \\ud83d \\\uD83D\uDE00"  # \ud83d
b: '\ud83d\uDe00 \uDbFf'
c: \uDBff\\ud83d
d: |  # \ud811
  \ud83D
"\ud83d\ude00": [k, "\ud83d\ude00
  \ud83d\ude01"]
e: "\ue000 \ue900"
"""
    assert read_yaml(text) == {
        "a": "\U0001f600 \\ud83d \\\U0001f600", "b": "\\ud83d\\uDe00 \\uDbFf", "c": "\\uDBff\\\\ud83d",
        "d": "\\ud83D\n", "\U0001f600": ["k", "\U0001f600 \U0001f601"], "e": "\ue000 \ue900",
    }  # fmt: skip
    assert places_of_yaml('x: ["\\ud83d\\ude00", y]')[("x", 1), False][:2] == (1, 21)
    taken = 'a: "\ue000 \\uE9ff \\U0000f100"\nb: "\\ud83d"'
    assert rules_of(taken, "yaml")[0] == ("surrogate", 2, 5)


@pytest.mark.covers("CV-11")
@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ("{k: ", "}")])
def test_levels_of_aliases_in_aliases_count(open_: str, close: str) -> None:
    rows = ["a0: &a0 1"]
    rows += [f"a{i}: &a{i} {open_ * 20}*a{i - 1}{close * 20}" for i in range(1, 100)]
    assert rules_of("\n".join(rows), "yaml")[0] == ("document-depth", 5, 9 + 20 * len(open_))
    assert read_yaml("\n".join(rows[:4]))["a3"]


@pytest.mark.covers("CV-6", "CV-51")
@pytest.mark.parametrize("form", ["yaml", "json", "data", "aliases"])
def test_document_with_too_many_values_is_refused_before_they_are_read(form: str) -> None:
    data = {"holdfast": "1.0", "name": "n", "nodes": [], "ui": {"a": [0] * MAX_DOCUMENT_VALUES}}
    if form == "data":
        found = read_sent(data)
    elif form == "aliases":
        row = f"a: &x [{'0,' * 1_000}]\nb: '{'t' * 90_000}'\nc: ["
        found = read_text(row + "*x, " * 300 + "]", "yaml")
    else:
        found = read_text(json.dumps(data), "json" if form == "json" else "yaml")
    (problem,) = found.problems()
    assert (problem.rule, problem.message) == ("document-size", "it has more than 250,000 keys and values")
    assert problem.fix == "split it into sub-flows, keep data outside"


@pytest.mark.covers("CV-51")
def test_parser_stops_at_the_first_value_over_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    events = yaml_text._events

    def counted(text: str) -> Any:
        for event in events(text):
            taken.append(1)
            yield event

    monkeypatch.setattr(yaml_text, "_events", counted)
    found = read_text("ui: [" + "a, " * 5_000 + "]", "yaml", most=100)
    assert [(each.rule, each.line) for each in found.problems()] == [("document-size", 1)]
    assert len(taken) < 110


@pytest.mark.covers("CV-11")
def test_aliases_are_copies_and_may_not_make_the_document_ten_times_larger() -> None:
    found = read_yaml("a: &x {k: [1]}\nb: *x")
    assert found["a"] == found["b"]
    assert found["a"] is not found["b"]
    rows = ["a0: &a0 [" + ", ".join(["x"] * 10) + "]"]
    rows += [f"a{i}: &a{i} [" + ", ".join([f"*a{i - 1}"] * 10) + "]" for i in range(1, 9)]
    assert rules_of("\n".join(rows), "yaml")[0][0] == "alias"


@pytest.mark.covers("CV-11")
@pytest.mark.parametrize("use", ["[{}]", "{{k: [{}]}}", "&b [{}]"])
def test_characters_of_aliased_texts_count_as_values_do(use: str) -> None:
    text = f"a: &x {'t' * 5_000}\nb: "
    assert len(read_yaml(text + use.format(", ".join(["*x"] * 9)))) == 2
    assert rules_of(text + use.format(", ".join(["*x"] * 11)), "yaml")[0][0] == "alias"


@pytest.mark.covers("CV-11")
def test_characters_of_aliased_keys_count() -> None:
    text = f"a: &x {'t' * 5_000}\nb: ["
    assert rules_of(text + ", ".join(["{*x : 1}"] * 11) + "]", "yaml")[0][0] == "alias"
    text = f"a: &y {{{'t' * 1_000}: 1}}\nb: ["
    assert rules_of(text + ", ".join(["*y"] * 12) + "]", "yaml")[0][0] == "alias"


@pytest.mark.covers("CV-1")
def test_every_top_level_key_is_known_and_another_names_the_nearest() -> None:
    whole = GOOD + (
        "label: Sample\ndescription: What it does\ntags: [a]\noutput: {type: object}\nui: {zoom: 2}\n"
        "variables: {k: {type: string}}\nnotes: [{id: n, text: t, colour: red}]\ngroups: [{id: g, nodes: [m]}]\n"
    )
    assert problems(whole) == []
    [unknown] = problems(GOOD + "descripton: x\n")
    assert (unknown.rule, unknown.path, unknown.fix) == (
        "key-unknown",
        "/descripton",
        "did you mean 'description'?",
    )


@pytest.mark.covers("CV-1", "CV-4")
def test_ui_is_kept_and_never_read() -> None:
    text = GOOD.replace("{id: m,", "{id: m, ui: {anything: [1, {x: 2}]}, position: {x: 1, y: 2.5, z: 3},")
    text += "ui: {zoom: 2}\n"
    document = read_text(text, "yaml").document
    assert document is not None
    assert document.data["nodes"][1]["ui"] == {"anything": [1, {"x": 2}]}
    assert graph_fingerprint(graph(text)) == graph_fingerprint(graph(GOOD))


@pytest.mark.covers("CV-2")
def test_ids_are_unique_and_of_known_characters() -> None:
    assert [each.rule for each in problems(EXAMPLES["node-duplicate"][0])] == ["node-duplicate"]
    [wrong] = [each for each in problems(GOOD.replace("id: m", "id: m m")) if each.rule == "type"]
    assert wrong.field == "id"
    assert wrong.fix is not None
    assert "at most 64" in wrong.fix


@pytest.mark.covers("CV-3")
def test_edge_has_a_default_id_and_reads_the_handle_of_other_editors() -> None:
    handle = GOOD.replace("{source: m, target: z}", "{source: m, sourceHandle: out, target: z}")
    named = GOOD.replace("{source: m, target: z}", "{id: 'm:out->z', source: m, target: z}")
    assert [edge.id for edge in graph(GOOD).edges] == ["a:out->m", "m:out->z"]
    assert (
        graph_fingerprint(graph(handle)) == graph_fingerprint(graph(named)) == graph_fingerprint(graph(GOOD))
    )
    [unknown] = problems(EXAMPLES["port-unknown"][0])[-1:]
    assert unknown.fix == "its ports are out, error"


@pytest.mark.covers("CV-6")
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"description": "x" * limits.MAX_BYTES}, "document-size"),
        ({"nodes": [{"id": f"n{i}", "type": "set"} for i in range(limits.MAX_NODES + 1)]}, "document-size"),
        ({"edges": [{"source": "a", "target": "z"}] * (limits.MAX_EDGES + 1)}, "document-size"),
        ({"ui": json.loads("[" * 65 + "]" * 65)}, "document-depth"),
        (
            {"nodes": [{"id": "a", "type": "set", "config": {"values": {"x": "y" * 256_001}}}]},
            "document-size",
        ),
    ],
)
def test_document_beyond_a_limit_is_refused(change: dict[str, Any], rule: str) -> None:
    data = {"holdfast": "1.0", "name": "big", "nodes": [], **change}
    found = compiled(json.dumps(data))
    assert rule in {each.rule for each in found.problems}
    assert found.spec is None


@pytest.mark.covers("CV-6")
def test_schema_with_a_remote_reference_is_refused() -> None:
    text = flow(head='input: {type: object, properties: {a: {$ref: "https://example.org/x.json"}}}')
    assert "json-schema" in [each.rule for each in problems(text)]


@pytest.mark.covers("CV-47")
def test_newer_minor_version_is_refused_and_named() -> None:
    [newer] = problems(EXAMPLES["document-newer"][0])
    assert (newer.rule, newer.line) == ("document-newer", 1)
    assert "1.1" in newer.message


@pytest.mark.covers("CV-50")
def test_problem_has_pointer_field_line_and_column_inside_of_an_expression() -> None:
    text = flow("{id: m, type: condition, config: {when: 'n >> 1'}}", "a -> m\nm:true -> z\nm:false -> z")
    [found] = [each for each in problems(text) if each.rule == "expression"]
    line = text.splitlines()[(found.line or 0) - 1]
    assert line[(found.column or 0) - 1 :].startswith("> 1'")
    assert (found.path, found.field, found.node) == ("/nodes/1/config/when", "when", "m")


@pytest.mark.covers("CV-50")
def test_all_problems_are_reported_at_once_in_order_of_place_and_an_unknown_type_hides_none() -> None:
    nodes = "\n".join(f"{{id: n{i}, type: nothing{i}}}" for i in range(300))
    found = problems(flow(nodes + "\n{id: m, type: wait}"))
    assert len(found) == 200
    assert [each.line for each in found] == sorted(each.line or 0 for each in found)
    few = problems(flow("{id: m, type: nothing}\n{id: w, type: wait}", "a -> m -> w -> z"))
    assert [each.rule for each in few] == ["type-unknown", "wait-one-of"]


@pytest.mark.covers("CV-12")
@pytest.mark.parametrize("rule", ["surrogate", "timeout-branch", "case-duplicate", "default-option"])
@pytest.mark.parametrize("form", FORMATS)
def test_document_that_is_written_and_read_again_is_equal(rule: str, form: Format) -> None:
    document = read_text(EXAMPLES[rule][1], "yaml").document
    assert document is not None
    text = dump_document(document, form)
    again = read_text(text, form).document
    assert again == document
    assert again is not None
    assert dump_document(again, form) == text
    assert graph_fingerprint(compiled(text).require_valid() if form == "yaml" else _graph_of_json(text)) == (
        graph_fingerprint(graph(EXAMPLES[rule][1]))
    )


def _graph_of_json(text: str) -> Any:
    from holdfast.frontends.document.compile import compile_document

    return compile_document(read_text(text, "json"), site_of()).require_valid()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.covers("CV-12")
@settings(max_examples=150, deadline=None)
@given(values)
def test_any_data_is_the_same_after_it_was_written_and_read(value: Any) -> None:
    data = {"holdfast": "1.0", "name": "n", "nodes": [], "ui": value}
    for form in FORMATS:
        read = read_text(dump_data(data, form), form)
        assert read.document is not None, read.problems()
        assert json.dumps(read.document.data) == json.dumps(data)


def test_format_is_told_by_the_name_of_the_file() -> None:
    assert [format_of(name) for name in ("a.json", "A.JSON", "a.yaml", "a.yml")] == [
        "json",
        "json",
        "yaml",
        "yaml",
    ]


def test_data_that_no_text_could_have_is_refused_without_places() -> None:
    found = read_data({"holdfast": "1.0", "name": "n", "nodes": [{"id": object()}]}).problems()
    assert found[0].rule == "value"
    assert {each.line for each in found} == {None}
    assert read_data(["x"]).problems()[0].rule == "document"


@pytest.mark.parametrize("depth", [100, 600, 900, 100_000])
def test_text_that_is_nested_too_deep_is_answered_however_deep_it_is(depth: int) -> None:
    """Also where the reader of JSON still reads it, and its places cannot be told any more."""
    text = '{"holdfast": "1.0", "ui": ' + "[" * depth + "]" * depth + "}"
    for form in FORMATS:
        assert "document-depth" in [each.rule for each in read_text(text, form).problems()]
